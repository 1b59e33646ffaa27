//! One configuration file: the user's `$XDG_CONFIG_HOME/discnice/config.toml`, or the site's `/etc/discnice/config.toml`.
//!
//! ```toml
//! strict = true          # a command is not started if a limit cannot hold for it
//! locked = ["class.session"]      # only in the site's: what users may tighten, and not loosen
//!
//! [default]              # a job that was given neither numbers nor a class
//! disk = "20M"
//! when = "busy"
//!
//! [class.backup]         # the class of this name, when it is made
//! disk-read = "5M"      # or "10%" of what `discnice calibrate` measured of the disk below the working directory
//! meta-ops = 1000
//! weight = 50
//! guest = true
//! policy = ["/home/me/bin/by-battery"]   # "window", "sleep", or a program of your own
//! fleet = "rediss://node@files.example/backup?password-file=/etc/discnice/password"
//!
//! [class.session]        # login sessions, by `discnice enter`
//! disk = "20M"
//! message = "Large transfers: use dtn.example"
//!
//! [busy]                 # from what traffic of others on classes give way, instead of what follows from the disk
//! high = "4M"
//! low = "1M"
//! starved = "256K"
//!
//! [polite]               # of jobs that are regulated by their progress
//! alpha = 0.02
//! ```
//!
//! `include` and `[[rule]]` are in [`super::rules`]. The keys of classes are the options of `discnice class set`, without their dashes, `fleet`: the address of a
//! budget that the class shares with those of other machines (docs/fleet.md), and `message`: what `discnice enter` says.

mod parse;
mod reason;

use std::collections::BTreeMap;

use discnice_progress::model::Setting;
use serde::Deserialize;
use toml::Spanned;

use super::Busy;
use super::entry::Entry;
use crate::commands::limits::LimitArgs;

/// The name in `locked` for `strict`, and that for the section of jobs without a class.
const STRICT: &str = "strict";
const DEFAULT: &str = "default";
/// The name in `locked` for rules: the site's are asked first.
const RULES: &str = "rules";
/// What stands before a class's name in `locked`.
const CLASS: &str = "class.";

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    strict: Option<bool>,
    #[serde(default)]
    locked: Vec<Spanned<String>>,
    default: Option<Spanned<LimitArgs>>,
    #[serde(default)]
    class: BTreeMap<Spanned<String>, Spanned<LimitArgs>>,
    /// Limits by the name of a kind of jobs.
    #[serde(default)]
    preset: BTreeMap<Spanned<String>, Spanned<LimitArgs>>,
    /// Files of rules.
    #[serde(default)]
    include: Vec<Spanned<String>>,
    /// Which processes that no command of ours started enter a class.
    #[serde(default)]
    rule: Vec<Entry>,
    busy: Option<Spanned<Busy>>,
    #[serde(default)]
    polite: BTreeMap<Spanned<String>, Spanned<f64>>,
    /// What `polite` says.
    #[serde(skip)]
    progress: Vec<Setting>,
}

impl File {
    /// From what traffic on others count as busy.
    pub fn busy(&self) -> Busy {
        self.busy.as_ref().map(|busy| *busy.as_ref()).unwrap_or_default()
    }

    /// Parameters of regulation by progress.
    pub fn progress(&self) -> &[Setting] {
        &self.progress
    }

    /// Refuses what cannot be locked, or is not there to be.
    fn lockable(&self, name: &str) -> Result<(), String> {
        let is_there = match (name, name.strip_prefix(CLASS)) {
            (STRICT, _) => self.strict.is_some(),
            (DEFAULT, _) => self.default.is_some(),
            (RULES, _) => !self.rule.is_empty() || !self.include.is_empty(),
            (_, Some(class)) => self.class(class).is_some(),
            _ => {
                return Err(format!(
                    "locked: give strict, default, rules or class.NAME, not {name:?}"
                ));
            }
        };
        is_there.then_some(()).ok_or_else(|| format!("locked: {name} is not set in this file"))
    }

    fn locks(&self, name: &str) -> bool {
        self.locked.iter().any(|one| one.as_ref() == name)
    }

    /// Whether users may not change what `strict` says.
    pub fn locks_strict(&self) -> bool {
        self.locks(STRICT)
    }

    /// Whether users' rules come after those of this file.
    pub fn locks_rules(&self) -> bool {
        self.locks(RULES)
    }

    /// The rules that stand in this file.
    pub(super) fn rules(&self) -> &[Entry] {
        &self.rule
    }

    /// The names, or paths, of files with more of them.
    pub(super) fn includes(&self) -> impl Iterator<Item = &str> {
        self.include.iter().map(|name| name.as_ref().as_str())
    }

    /// The limits that users may not loosen for a class of this name: its own section's, else those of jobs without a
    /// class.
    pub fn locked(&self, class: &str) -> Option<&LimitArgs> {
        let (section, name) = match self.class(class) {
            Some(section) => (section, &*format!("{CLASS}{class}")),
            None => (self.unnamed()?, DEFAULT),
        };
        self.locks(name).then_some(section)
    }

    /// Whether `run` refuses a command for which a limit does not hold, if the file says so.
    pub const fn strict(&self) -> Option<bool> {
        self.strict
    }

    /// The limits that a class of this name is made with.
    pub fn class(&self, name: &str) -> Option<&LimitArgs> {
        let named = self.class.iter().find(|(one, _)| one.as_ref() == name);
        named.map(|(_, limits)| limits.as_ref())
    }

    /// The address of the budget that a class of this name shares with those of other machines.
    pub fn fleet(&self, name: &str) -> Option<&str> {
        self.class(name).and_then(LimitArgs::fleet)
    }

    /// The program that is the policy of a class of this name, with its arguments.
    pub fn program(&self, name: &str) -> Option<&[String]> {
        self.class(name).and_then(LimitArgs::program)
    }

    /// Classes that share a budget with those of other machines, with its address.
    pub fn fleets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.class
            .iter()
            .filter_map(|(name, limits)| Some((&**name.as_ref(), limits.as_ref().fleet()?)))
    }

    /// The limits of a kind of jobs.
    pub fn preset(&self, name: &str) -> Option<&LimitArgs> {
        let named = self.preset.iter().find(|(one, _)| one.as_ref() == name);
        named.map(|(_, limits)| limits.as_ref())
    }

    /// The names of all presets.
    pub fn presets(&self) -> impl Iterator<Item = &str> {
        self.preset.keys().map(|name| &**name.as_ref())
    }

    /// The limits of a job that was given neither numbers nor a class.
    pub fn unnamed(&self) -> Option<&LimitArgs> {
        self.default.as_ref().map(Spanned::as_ref)
    }
}

#[cfg(test)]
mod tests;
