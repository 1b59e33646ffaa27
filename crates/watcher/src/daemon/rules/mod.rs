//! Rules: which class a process enters that was not started by a command of ours.
//!
//! - [`pattern`]: what a condition is compared with; [`subject`]: what `/proc` tells of a process;
//! - this file: conditions, rules, and the first one that matches; nothing here looks at the system;
//! - `files`: whether the configuration has changed;
//! - `patrol`: finds the processes, as cheaply as that can be done without privilege.

mod files;
pub(crate) mod patrol;
pub mod pattern;
pub mod subject;

use std::fmt;
use std::path::PathBuf;

use discnice_ledger::policy::Limits;
use discnice_sys::block::BlockId;
use serde::Deserialize;

use pattern::Patterns;
use subject::{Key, Subject};

/// What must hold of a process: all of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Given")]
pub struct ProcessConditions(Vec<(Key, Patterns)>);

/// The conditions as a file has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "conditions, such as { exe = \"name\" }")]
struct Given {
    #[serde(deserialize_with = "pattern::paths")]
    exe: Option<Patterns>,
    #[serde(deserialize_with = "pattern::names")]
    name: Option<Patterns>,
    #[serde(deserialize_with = "pattern::paths")]
    cgroup: Option<Patterns>,
    #[serde(deserialize_with = "pattern::texts")]
    cmdline: Option<Patterns>,
}

impl TryFrom<Given> for ProcessConditions {
    type Error = &'static str;

    fn try_from(given: Given) -> Result<Self, Self::Error> {
        let Given { exe, name, cgroup, cmdline } = given;
        let keys =
            [(Key::Exe, exe), (Key::Name, name), (Key::Cgroup, cgroup), (Key::Cmdline, cmdline)];
        let keys: Vec<_> =
            keys.into_iter().filter_map(|(key, patterns)| Some((key, patterns?))).collect();
        if keys.is_empty() {
            return Err("match names no condition; give exe, name, cgroup or cmdline");
        }
        Ok(Self(keys))
    }
}

impl ProcessConditions {
    /// Returns true if all of them hold.
    #[must_use]
    pub fn hold(&self, subject: &Subject) -> bool {
        self.0.iter().all(|(key, patterns)| patterns.match_any(*key, subject))
    }

    /// Each of them, and whether it holds.
    pub fn each<'a>(
        &'a self,
        subject: &'a Subject,
    ) -> impl Iterator<Item = (Key, &'a Patterns, bool)> {
        self.0
            .iter()
            .map(move |(key, patterns)| (*key, patterns, patterns.match_any(*key, subject)))
    }

    /// What they ask about a process.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.iter().map(|(key, _)| *key)
    }
}

impl fmt::Display for ProcessConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, patterns)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{key}={patterns}")?;
        }
        Ok(())
    }
}

/// What happens to a process that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It enters the class of this name, which is made with these limits if need be.
    Enter(String, Box<Limits>),
    /// It is left alone, whatever later rules say.
    LeaveAlone,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What must hold of a process.
    pub conditions: ProcessConditions,
    /// What then happens to it.
    pub outcome: Outcome,
    /// File and line, for people.
    pub place: String,
}

/// Returns the rule that decides about a process: the first that matches.
#[must_use]
pub fn first<'a>(rules: &'a [Rule], subject: &Subject) -> Option<&'a Rule> {
    rules.iter().find(|rule| rule.conditions.hold(subject))
}

/// What the configuration says, and the files that it was read from, also those that do not exist.
#[derive(Debug)]
pub struct Loaded {
    /// The rules, or one line on what is wrong.
    pub rules: Result<Vec<Rule>, String>,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// A process that a rule puts into a class.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its number.
    pub id: u32,
    /// When it started: another process of this number is not meant.
    pub started: u64,
    /// The name of the class.
    pub class: &'a str,
    /// The limits of a class that is made for it.
    pub limits: &'a Limits,
}

/// What the daemon asks of the program that it is part of.
#[derive(Debug, Clone, Copy)]
pub struct Rulebook {
    /// Tells where the user's settings are, without a look there.
    pub place: fn() -> Option<PathBuf>,
    /// Reads the rules.
    pub load: fn() -> Loaded,
    /// Makes a process a member; returns the block of its class, or `None` for one that is in a class already or
    /// has ended.
    ///
    /// # Errors
    /// It cannot be one.
    pub admit: fn(Candidate<'_>) -> Result<Option<BlockId>, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(text: &str) -> ProcessConditions {
        toml::from_str(text).unwrap()
    }

    fn baloo() -> Subject {
        Subject::new(
            "/usr/lib/x86_64-linux-gnu/libexec/kf6/baloo_file",
            "baloo_file",
            "/user.slice/user-1000.slice/user@1000.service/app.slice/kde-baloo.service",
            "/usr/lib/x86_64-linux-gnu/libexec/kf6/baloo_file --now",
        )
    }

    #[test]
    fn all_conditions_must_hold_and_one_pattern_of_each() {
        for (text, holds) in [
            ("exe = 'baloo_file'", true),
            ("exe = 'kf6/baloo_*'", true),
            ("exe = '/usr/lib/**/baloo_file'", true),
            ("exe = '/usr/*/baloo_file'", false),
            ("exe = 'aloo_file'", false),
            ("exe = 'kf6/*/baloo_file'", false),
            ("exe = 'libexec/*/baloo_file'", true),
            ("exe = '**/libexec/**/baloo_file'", true),
            ("exe = '?sr/lib/x86_64-linux-gnu/libexec/kf6/baloo_file'", true),
            ("exe = ['tracker*', 'baloo_file']", true),
            ("name = 'baloo*'", true),
            ("name = 'Baloo*'", false),
            ("cgroup = 'kde-baloo.service'", true),
            ("cgroup = 'app.slice'", true),
            ("cgroup = '/user.slice'", true),
            ("cgroup = '/app.slice'", false),
            ("cgroup = 'pp.slice'", false),
            ("cmdline = '* --now'", true),
            ("cmdline = '--now'", false),
            ("exe = 'baloo_file'\ncmdline = '* --later'", false),
            ("exe = 'baloo_file'\nname = 'baloo_f[hi]le'", true),
        ] {
            assert_eq!(conditions(text).hold(&baloo()), holds, "{text}");
        }
    }

    #[test]
    fn the_first_that_matches_decides() {
        let rule =
            |text, outcome| Rule { conditions: conditions(text), outcome, place: String::new() };
        let enter = |class: &str| Outcome::Enter(class.into(), Box::new(Limits::UNLIMITED));
        let rules = [
            rule("name = 'other'", enter("a")),
            rule("cmdline = '*--now'", Outcome::LeaveAlone),
            rule("name = 'baloo*'", enter("b")),
        ];
        assert_eq!(first(&rules, &baloo()).unwrap().outcome, Outcome::LeaveAlone);
        assert_eq!(first(&rules[2..], &baloo()).unwrap().outcome, enter("b"));
        assert!(first(&rules[..1], &baloo()).is_none());
    }

    #[test]
    fn wrong_conditions_are_refused() {
        for (text, why) in [
            ("", "no condition"),
            ("user = 'me'", "unknown field `user`"),
            ("exe = '[a'", "no pattern: "),
            ("exe = '/a**b'", "no pattern: "),
            ("exe = 'a/**/b'", "begins with /"),
            ("exe = ''", "empty"),
            ("exe = []", "empty"),
            ("exe = 3", "text in quotes"),
            ("name = 'a_name_of_seventeen'", "at most 15"),
        ] {
            let error = toml::from_str::<ProcessConditions>(text).unwrap_err();
            assert!(error.message().contains(why), "{text}: {}", error.message());
        }
        assert!(toml::from_str::<ProcessConditions>("name = 'a_name_of_seve*'").is_ok());
    }
}
