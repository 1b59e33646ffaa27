//! Phases of a job as seen from outside (MS Manners, section 4.4).
//!
//! A job that works in phases has other targets in each. Which phase it is in a file says, or the job's log, or the
//! metrics themselves: `moving` takes those that rose since the last look for the phase, so that a job that says
//! nothing of its phases has a target for each mixture of work.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use regex::bytes::Regex;

use crate::control::metric::{Log, Metric, open_file};

/// A name that is longer is cut.
const LONGEST: u64 = 64;
/// More names than these are no phases; what comes after them is one phase without a name.
const MOST: usize = 64;

/// Where the phase is told, as specified by a person.
#[derive(Debug, Clone)]
pub struct Phases {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    File(PathBuf),
    Match(PathBuf, Regex),
    Moving,
}

/// What may be typed, for error messages.
const ACCEPTED: &str = "give file:PATH, match:PATH:REGEX or moving";

impl FromStr for Phases {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let kind = match (kind, rest) {
            ("moving", "") if text == "moving" => Kind::Moving,
            ("file", path) if !path.is_empty() => Kind::File(path.into()),
            ("match", rest) => {
                let parts = rest.split_once(':').filter(|(path, _)| !path.is_empty());
                let (path, regex) =
                    parts.ok_or_else(|| format!("match needs a path and a regex; {ACCEPTED}"))?;
                let regex = Regex::new(regex)
                    .map_err(|error| format!("bad regular expression: {error}"))?;
                Kind::Match(path.into(), regex)
            }
            _ => return Err(format!("nothing that tells of phases; {ACCEPTED}")),
        };
        Ok(Self { text: text.into(), kind })
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Phases {
    /// Returns this with absolute paths, independent of this process's working directory.
    ///
    /// # Errors
    /// As getcwd(3).
    pub fn absolute(mut self) -> io::Result<Self> {
        let (Kind::File(path) | Kind::Match(path, _)) = &mut self.kind else { return Ok(self) };
        let absolute = std::path::absolute(&*path)?;
        self.text = self.text.replacen(&*path.to_string_lossy(), &absolute.to_string_lossy(), 1);
        *path = absolute;
        Ok(self)
    }

    /// Refuses metrics of single phases where no phase has a name.
    ///
    /// # Errors
    /// What to do.
    pub fn check(phases: Option<&Self>, metrics: &[Metric]) -> Result<(), String> {
        let named = phases.is_some_and(|phases| !matches!(phases.kind, Kind::Moving));
        match metrics.iter().find(|metric| metric.phase().is_some()) {
            Some(metric) if !named => Err(format!(
                "metric {metric} is of one phase; say --phase file:PATH or --phase match:PATH:REGEX, too"
            )),
            _ => Ok(()),
        }
    }
}

/// The phase at one look.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Phase {
    /// Number of its targets.
    pub(crate) index: u32,
    /// Its name, for people.
    pub(crate) name: String,
    /// Its metrics.
    pub(crate) values: Vec<f64>,
    /// What they are counted from, where not from the last look at this phase.
    pub(crate) from: Option<Vec<f64>>,
}

/// Follows the phases of a job.
pub(crate) struct Follower {
    source: Told,
    /// The phase that each metric is of.
    of: Vec<Option<String>>,
    names: BTreeSet<String>,
    now: String,
    /// All metrics at the last look.
    last: Vec<f64>,
}

enum Told {
    Never,
    File(PathBuf),
    Log(Log),
    Moving,
}

impl Follower {
    pub(crate) fn new(phases: Option<&Phases>, metrics: &[Metric]) -> Self {
        let source = match phases.map(|phases| &phases.kind) {
            None => Told::Never,
            Some(Kind::File(path)) => Told::File(path.clone()),
            Some(Kind::Match(path, regex)) => Told::Log(Log::matches(path.clone(), regex.clone())),
            Some(Kind::Moving) => Told::Moving,
        };
        let of = metrics.iter().map(|metric| metric.phase().map(str::to_owned)).collect();
        let (names, now) = (BTreeSet::new(), String::new());
        Self { source, of, names, now, last: Vec::new() }
    }

    //= ms-manners/4.4-outside-phases
    /// The phase at this look, with its metrics of `values`; one that cannot be read is the last one, and told of.
    pub(crate) fn look(&mut self, values: Vec<f64>) -> (Phase, Option<String>) {
        if matches!(self.source, Told::Moving) {
            return (self.moving(values), None);
        }
        let (told, problem) = match self.told() {
            Ok(told) => (told, None),
            Err(error) => (None, Some(format!("phase: {error}; the last one counts"))),
        };
        let next = match told {
            Some(name) => self.admit(name),
            None => self.now.clone(),
        };
        let changed = next != self.now;
        self.now = next;
        let is_of = |of: &Option<String>| of.as_ref().is_none_or(|of| *of == self.now);
        let mine = self.of.iter().zip(&values).filter(|(of, _)| is_of(of));
        let mine: Vec<f64> = mine.map(|(_, value)| *value).collect();
        let index = if self.now.is_empty() { 0 } else { number(self.now.as_bytes()) };
        // What was done since the last look was done in both.
        let from = changed.then(|| mine.clone());
        (Phase { index, name: self.now.clone(), values: mine, from }, problem)
    }

    /// The phase of the metrics that rose since the last look.
    fn moving(&mut self, values: Vec<f64>) -> Phase {
        let last = std::mem::replace(&mut self.last, values.clone());
        let rose = values.iter().zip(&last).map(|(now, before)| now > before);
        let mask: String = rose.map(|rose| if rose { '1' } else { '0' }).collect();
        if mask.contains('1') {
            self.now = mask;
        }
        let is_known = last.len() == values.len() && last.iter().all(|value| value.is_finite());
        let index = if self.now.is_empty() { 0 } else { number(self.now.as_bytes()) };
        Phase { index, name: self.now.clone(), values, from: is_known.then_some(last) }
    }

    fn told(&mut self) -> io::Result<Option<String>> {
        match &mut self.source {
            Told::Never | Told::Moving => Ok(None),
            Told::File(path) => {
                let mut text = Vec::new();
                open_file(path)?.take(LONGEST).read_to_end(&mut text)?;
                let text = String::from_utf8_lossy(&text);
                Ok(text.lines().next().map(|line| line.trim().to_owned()))
            }
            Told::Log(log) => {
                log.follow()?;
                let last = log.last().map(String::from_utf8_lossy);
                Ok(last.map(|last| last.chars().take(LONGEST as usize).collect()))
            }
        }
    }

    /// The phase of this name; without a name if there are too many.
    fn admit(&mut self, name: String) -> String {
        if self.names.len() < MOST {
            self.names.insert(name.clone());
        }
        if self.names.contains(&name) { name } else { String::new() }
    }
}

/// Returns the number of a name, the same in each run: FNV-1a, 32 bits, never zero.
fn number(name: &[u8]) -> u32 {
    let sum = name
        .iter()
        .fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    sum.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn metrics(texts: &[&str]) -> Vec<Metric> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_accepted_and_refused() {
        for good in ["moving", "file:/run/phase", r"match:/log:^== (\w+)"] {
            assert_eq!(good.parse::<Phases>().map(|phases| phases.to_string()), Ok(good.into()));
        }
        for bad in ["", "file", "file:", "moving:x", "match:/log", "match::x", "match:/log:(", "x"]
        {
            assert!(bad.parse::<Phases>().is_err(), "{bad}");
        }
        let of_one = metrics(&["mark@lines:/log"]);
        assert!(Phases::check(None, &of_one).is_err());
        assert!(Phases::check(Some(&"moving".parse().unwrap()), &of_one).is_err());
        assert!(Phases::check(Some(&"file:/phase".parse().unwrap()), &of_one).is_ok());
        assert!(Phases::check(None, &metrics(&["cpu"])).is_ok());
    }

    //= ms-manners/4.4-outside-phases
    #[test]
    fn a_file_tells_the_phase_and_each_has_its_own_metrics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("phase");
        let phases = format!("file:{}", path.display()).parse().unwrap();
        let metrics = metrics(&["mark@lines:/marks", "sweep@lines:/sweeps", "cpu"]);
        let mut follower = Follower::new(Some(&phases), &metrics);
        let (phase, problem) = follower.look(vec![1.0, 2.0, 3.0]);
        assert!(problem.is_some() && phase.index == 0 && phase.values == [3.0]);
        fs::write(&path, "mark\n").unwrap();
        let (mark, problem) = follower.look(vec![4.0, 5.0, 6.0]);
        assert_eq!((mark.values.as_slice(), &mark.from), (&[4.0, 6.0][..], &Some(vec![4.0, 6.0])));
        assert!(problem.is_none() && mark.name == "mark");
        let (again, _) = follower.look(vec![5.0, 5.0, 7.0]);
        assert_eq!((again.index, again.from), (mark.index, None));
        fs::write(&path, "sweep").unwrap();
        let (sweep, _) = follower.look(vec![5.0, 6.0, 8.0]);
        assert!(sweep.values == [6.0, 8.0] && sweep.index != mark.index);
        fs::remove_file(&path).unwrap();
        assert_eq!(follower.look(vec![5.0, 7.0, 9.0]).0.name, "sweep", "the last one counts");
    }

    #[test]
    fn a_log_tells_the_phase_by_its_last_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "== scan\nfile 1\n== index of 3\n").unwrap();
        let phases = format!(r"match:{}:^== (\w+)", path.display()).parse().unwrap();
        let mut follower = Follower::new(Some(&phases), &metrics(&["cpu"]));
        assert_eq!(follower.look(vec![1.0]).0.name, "index");
    }

    //= ms-manners/4.4-outside-phases
    #[test]
    fn what_moves_is_the_phase_where_nothing_tells_it() {
        let mut follower =
            Follower::new(Some(&"moving".parse().unwrap()), &metrics(&["cpu", "bytes"]));
        let mut look = |cpu: f64, bytes: f64| follower.look(vec![cpu, bytes]).0;
        assert_eq!(
            (look(1.0, 1.0).index, look(1.0, 1.0).name),
            (0, String::new()),
            "nothing is known"
        );
        let computes = look(2.0, 1.0);
        assert_eq!((computes.name.as_str(), computes.from), ("10", Some(vec![1.0, 1.0])));
        let reads = look(2.0, 5.0);
        assert!(reads.name == "01" && reads.index != computes.index);
        assert_eq!(look(2.0, 5.0).index, reads.index, "a pause is of the same phase");
        assert_eq!(look(f64::NAN, 6.0).name, "01");
        assert_eq!(look(3.0, 7.0).from, None, "not counted from what was no number");
    }

    #[test]
    fn names_without_end_are_one_phase() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("phase");
        let phases = format!("file:{}", path.display()).parse().unwrap();
        let mut follower = Follower::new(Some(&phases), &metrics(&["cpu"]));
        let numbers: BTreeSet<u32> = (0..200)
            .map(|name| {
                fs::write(&path, name.to_string()).unwrap();
                follower.look(vec![1.0]).0.index
            })
            .collect();
        assert_eq!(numbers.len(), MOST + 1);
    }
}
