//! Conditions as people type them, and whether they are met.

use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use discnice_ledger::policy::{Condition, Conditions};
use discnice_units::Nanos;

use super::calendar::Civil;
use super::sources::Sources;
use super::wall_time::time_of_day;
use crate::complaint;
use crate::looks::RESTS_PER_LOOK;

/// A machine is idle after so long.
const IDLE: Duration = Duration::from_secs(300);
/// A command is asked so often, one that takes as long again after [`RESTS_PER_LOOK`] times what it took,
const COMMAND: Duration = Duration::from_secs(2);
/// and is ended if it runs for so long.
const LONGEST: Duration = Duration::from_secs(10);
const ACCEPTED: &str =
    "give ac, unmetered, idle, idle=10m, 22:00-06:00, load<2 or cmd:COMMAND, with commas between";

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Term {
    Ac,
    Unmetered,
    Idle(Duration),
    /// From when to when, in seconds of the day.
    Hours(u32, u32),
    Load(f64),
    Command(String),
}

/// All conditions of a job; they are met if each is.
#[derive(Debug, Clone, PartialEq)]
pub struct OnlyWhen(pub(super) Vec<Term>);

impl FromStr for OnlyWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut terms, mut rest) = (Vec::new(), text);
        loop {
            // A command may have commas.
            let (word, behind) = match rest.split_once(',') {
                Some(both) if !rest.starts_with("cmd:") => (both.0, Some(both.1)),
                _ => (rest, None),
            };
            terms.push(Term::parse(word.trim())?);
            match behind {
                Some(behind) => rest = behind,
                None => return Ok(Self(terms)),
            }
        }
    }
}

impl Term {
    fn parse(word: &str) -> Result<Self, String> {
        if let Some(command) = word.strip_prefix("cmd:") {
            let is_command = !command.trim().is_empty();
            return is_command
                .then(|| Self::Command(command.to_owned()))
                .ok_or_else(|| "cmd: without a command, as in cmd:'test -e ~/go'".into());
        }
        if let Some(time) = word.strip_prefix("idle=") {
            let time: Nanos = time.parse().map_err(|error| format!("{word:?}: {error}"))?;
            return Ok(Self::Idle(Duration::from_nanos(time.0)));
        }
        if let Some(load) = word.strip_prefix("load<") {
            let load = load.parse().ok().filter(|load: &f64| load.is_finite() && *load > 0.0);
            return load
                .map(Self::Load)
                .ok_or_else(|| format!("{word:?}: no load; give a number above 0, as in load<2"));
        }
        if let Some((from, to)) = word.split_once('-').filter(|_| word.contains(':')) {
            let hours = seconds(from).zip(seconds(to)).filter(|(from, to)| from != to);
            let hours = hours.map(|(from, to)| Self::Hours(from, to));
            return hours
                .ok_or_else(|| format!("{word:?}: no two different times, as in 22:00-06:00"));
        }
        match word {
            "ac" => Ok(Self::Ac),
            "unmetered" => Ok(Self::Unmetered),
            "idle" => Ok(Self::Idle(IDLE)),
            "" => Err(format!("a condition is missing; {ACCEPTED}")),
            _ => Err(unknown(word)),
        }
    }

    const fn kind(&self) -> Condition {
        match self {
            Self::Ac => Condition::Ac,
            Self::Unmetered => Condition::Unmetered,
            Self::Idle(_) => Condition::Idle,
            Self::Hours(..) => Condition::Hours,
            Self::Load(_) => Condition::Load,
            Self::Command(_) => Condition::Command,
        }
    }

    /// Whether it is met, unless it is a command.
    fn is_met(&self, sources: &Sources) -> bool {
        match self {
            Self::Ac => sources.has_mains(),
            Self::Unmetered => sources.is_unmetered(),
            Self::Idle(time) => sources.idle() >= *time,
            Self::Hours(from, to) => now().is_some_and(|now| is_within(now, *from, *to)),
            Self::Load(below) => sources.load().is_none_or(|load| load < *below),
            Self::Command(_) => true,
        }
    }
}

fn unknown(word: &str) -> String {
    const WORDS: [&str; 6] = ["ac", "unmetered", "idle", "load<2", "battery", "cmd:"];
    let meant = complaint::meant(word, WORDS).map_or_else(String::new, |meant| {
        format!("; did you mean {}", if meant == "battery" { "ac" } else { meant })
    });
    let end = if meant.is_empty() { ";" } else { "?" };
    format!("no condition {word:?}{meant}{end} {ACCEPTED}")
}

fn seconds(time: &str) -> Option<u32> {
    let (hour, minute, second) = time_of_day(time)?;
    u32::try_from(hour * 3600 + minute * 60 + second).ok()
}

fn now() -> Option<u32> {
    let civil = Civil::at(SystemTime::now())?;
    u32::try_from(civil.hour * 3600 + civil.minute * 60 + civil.second).ok()
}

/// Whether a time of the day is between two; the later one may be on the next day.
const fn is_within(time: u32, from: u32, to: u32) -> bool {
    if from < to { time >= from && time < to } else { time >= from || time < to }
}

/// Looks whether the conditions of a job are met.
#[derive(Debug)]
pub struct Watcher {
    terms: Vec<Term>,
    sources: Sources,
    commands: Vec<Asked>,
}

/// A command that is asked now and then. Until it has said something it does not succeed.
#[derive(Debug)]
struct Asked {
    command: String,
    succeeded: bool,
    running: Option<Child>,
    begun: Option<Instant>,
    pause: Duration,
}

impl Watcher {
    /// Begins; nothing is looked at yet.
    pub fn new(wanted: &OnlyWhen) -> Self {
        let commands = wanted.0.iter().filter_map(|term| match term {
            Term::Command(command) => Some(Asked {
                command: command.clone(),
                succeeded: false,
                running: None,
                begun: None,
                pause: COMMAND,
            }),
            _ => None,
        });
        let commands = commands.collect();
        Self { terms: wanted.0.clone(), sources: Sources::default(), commands }
    }

    /// The conditions that are not met now.
    pub fn unmet(&mut self) -> Conditions {
        self.commands.iter_mut().for_each(Asked::look);
        let fails = self.commands.iter().any(|asked| !asked.succeeded);
        let commands = if fails { Some(Condition::Command) } else { None };
        let others = self.terms.iter().filter(|term| !term.is_met(&self.sources));
        others.map(Term::kind).chain(commands).fold(Conditions::NONE, Conditions::with)
    }
}

impl Asked {
    /// Looks whether it has ended, and asks again if it is time.
    fn look(&mut self) {
        if let Some(child) = &mut self.running {
            let too_long = self.begun.is_some_and(|begun| begun.elapsed() > LONGEST);
            match child.try_wait() {
                Ok(None) if too_long => {
                    // Its own children are its concern.
                    let _ = child.kill();
                    return;
                }
                Ok(None) => return,
                ended => {
                    self.succeeded = ended.is_ok_and(|end| end.is_some_and(|end| end.success()));
                }
            }
            let took = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            // One that ends soon is only found at the next look.
            self.pause = if took < COMMAND { COMMAND } else { took * RESTS_PER_LOOK };
            self.running = None;
        }
        if self.begun.is_none_or(|begun| begun.elapsed() >= self.pause) {
            self.begun = Some(Instant::now());
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &self.command]);
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            self.running = shell.spawn().ok();
            self.succeeded &= self.running.is_some();
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_type_them() {
        let terms = |text: &str| text.parse::<OnlyWhen>().map(|wanted| wanted.0);
        let all = "ac,unmetered, idle,idle=10m,22:00-06:00,load<2.5,cmd:test -e a,b";
        assert_eq!(
            terms(all).unwrap(),
            [
                Term::Ac,
                Term::Unmetered,
                Term::Idle(IDLE),
                Term::Idle(Duration::from_secs(600)),
                Term::Hours(22 * 3600, 6 * 3600),
                Term::Load(2.5),
                Term::Command("test -e a,b".into()),
            ]
        );
        for (text, why) in [
            ("", "missing"),
            ("ac,", "missing"),
            ("idel", "did you mean idle?"),
            ("unmeterd", "did you mean unmetered?"),
            ("batery", "did you mean ac?"),
            ("moon", "no condition \"moon\"; give ac"),
            ("idle=soon", "not a duration"),
            ("load<many", "no load"),
            ("load<0", "no load"),
            ("22:00-25:00", "no two different times"),
            ("22:00-22:00", "no two different times"),
            ("22:00", "no condition"),
            ("cmd: ", "without a command"),
        ] {
            let error = terms(text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{text:?}: {error}");
        }
    }

    #[test]
    fn hours_may_pass_midnight() {
        assert!(is_within(5, 0, 10) && !is_within(10, 0, 10));
        assert!(is_within(23, 22, 6) && is_within(5, 22, 6));
        assert!(!is_within(6, 22, 6) && !is_within(12, 22, 6));
    }

    #[test]
    fn a_command_is_waited_for_and_asked_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (go, asked) = (folder.path().join("go"), folder.path().join("asked"));
        let text = format!("cmd:echo >>{}; test -e {}", asked.display(), go.display());
        std::fs::write(&go, "").unwrap();
        let mut watcher = Watcher::new(&text.parse().unwrap());
        let first = watcher.unmet();
        assert!(first.iter().eq([Condition::Command]), "not known yet");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !watcher.unmet().is_empty() {
            assert!(Instant::now() < deadline, "it succeeds");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(std::fs::read(&asked).unwrap().len(), 1);
    }
}
