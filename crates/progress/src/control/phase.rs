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
mod tests;
