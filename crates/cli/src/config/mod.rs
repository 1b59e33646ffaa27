//! Settings: the site's, `/etc/discnice/config.toml`, and over them the user's, `$XDG_CONFIG_HOME/discnice/config.toml`.
//!
//! The user's keys replace the site's one by one. What the site has locked they can only tighten, as options can
//! (docs/adr/0028-site.md).

mod busy;
mod entry;
mod file;
mod place;
mod read;
pub mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use discnice_ledger::policy::Limits;
use discnice_progress::model::Setting;

pub use busy::Busy;
pub use file::File;
use read::{own, read_site, site};

use crate::commands::limits::LimitArgs;
use crate::output::tell;
use crate::polite;

/// The settings of both files.
#[derive(Debug)]
pub struct ConfigFiles {
    own: File,
    site: Arc<File>,
}

impl ConfigFiles {
    /// Reads both files; one that does not exist says nothing.
    ///
    /// # Errors
    /// The user's cannot be read, or says something that is no configuration: file, line, column, reason.
    pub fn load() -> anyhow::Result<Self> {
        Ok(Self { own: own()?, site: Arc::clone(site()) })
    }

    /// Reads both files, also the site's, which is otherwise read once: for a process that goes on for long.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn anew() -> anyhow::Result<Self> {
        Ok(Self { own: own()?, site: Arc::new(read_site()) })
    }

    /// Parameters of regulation by progress, the later ones over the former.
    pub fn progress(&self) -> impl Iterator<Item = Setting> {
        self.site.progress().iter().chain(self.own.progress()).copied()
    }

    /// From what traffic on others count as busy.
    pub fn busy(&self) -> Busy {
        self.own.busy().over(self.site.busy())
    }

    /// Whether `run` refuses a command for which a limit does not hold.
    pub fn strict(&self) -> bool {
        let own = self.own.strict().filter(|_| !self.site.locks_strict());
        own.or(self.site.strict()).unwrap_or_default()
    }

    /// The limits that a class of this name is made with.
    ///
    /// # Errors
    /// They are parts of what was never measured.
    pub fn class(&self, name: &str) -> anyhow::Result<Option<Limits>> {
        let sections = (self.site.class(name), self.own.class(name));
        Ok(combined(sections)?.map(|limits| bound(&self.site, name, limits)))
    }

    /// The limits of a job that was given neither numbers nor a class.
    ///
    /// # Errors
    /// They are parts of what was never measured.
    pub fn default_limits(&self) -> anyhow::Result<Limits> {
        let unnamed = combined((self.site.unnamed(), self.own.unnamed()))?;
        Ok(unnamed.unwrap_or_else(polite::limits))
    }

    /// Whether a job that was given neither numbers nor a class gets a disk rate of the configuration, not the built-in one.
    pub fn has_default_disk(&self) -> bool {
        let sections = [self.site.unnamed(), self.own.unnamed()];
        sections.into_iter().flatten().any(LimitArgs::has_disk)
    }

    /// The limits of a new class that has no section: numbers replace the default, and settings alone change it.
    ///
    /// # Errors
    /// They contradict each other, or are parts of what was never measured.
    pub fn limits_of_new(&self, given: &LimitArgs) -> anyhow::Result<Limits> {
        let before = if given.has_threshold() {
            Limits::UNLIMITED
        } else {
            given.with_room(self.default_limits()?)?
        };
        given.over(before)
    }

    /// The limits of a class that had these `before`, for a job in it: its numbers replace the default there as in a new class,
    /// where they hold always.
    ///
    /// # Errors
    /// They contradict each other, or are parts of what was never measured.
    pub fn limits_of_existing(&self, given: &LimitArgs, before: Limits) -> anyhow::Result<Limits> {
        let is_replaced = given.has_threshold() && before == self.default_limits()?;
        given.over(if is_replaced { Limits::UNLIMITED } else { before })
    }

    /// What users of a class of this name are told.
    pub fn message(&self, name: &str) -> Option<&str> {
        let sections = [self.own.class(name), self.site.class(name)];
        sections.into_iter().flatten().find_map(LimitArgs::message)
    }

    /// The address of the budget that a class of this name shares with those of other machines.
    pub fn fleet(&self, name: &str) -> Option<&str> {
        let own = self.own.fleet(name).filter(|_| self.site.locked(name).is_none());
        own.or_else(|| self.site.fleet(name))
    }

    /// What a preset of this name says: the user's own, else the site's.
    pub fn preset(&self, name: &str) -> Option<&LimitArgs> {
        self.own.preset(name).or_else(|| self.site.preset(name))
    }

    /// The names of the presets of both.
    pub fn presets(&self) -> impl Iterator<Item = &str> {
        self.own.presets().chain(self.site.presets())
    }

    /// The program that is the policy of a class of this name, with its arguments.
    pub fn program(&self, name: &str) -> Option<&[String]> {
        let own = self.own.program(name).filter(|_| self.site.locked(name).is_none());
        own.or_else(|| self.site.program(name))
    }

    /// Classes that share a budget with those of other machines, with its address.
    pub fn fleets(&self) -> impl Iterator<Item = (&str, &str)> {
        let names: BTreeMap<_, _> = self.site.fleets().chain(self.own.fleets()).collect();
        names.into_keys().filter_map(|name| Some((name, self.fleet(name)?)))
    }
}

/// The user's section over the site's.
fn combined(
    (site, own): (Option<&LimitArgs>, Option<&LimitArgs>),
) -> anyhow::Result<Option<Limits>> {
    let Some(section) = site else {
        return own.map(|own| own.over(Limits::UNLIMITED)).transpose();
    };
    let limits = section.over(Limits::UNLIMITED)?;
    own.map_or(Ok(limits), |own| own.fitted_over(limits)).map(Some)
}

/// Limits of a class of this name as far as the site permits them; a line says where it does not.
#[must_use]
pub fn permitted(name: &str, wanted: Limits) -> Limits {
    let permitted = bound(site(), name, wanted);
    if permitted != wanted {
        let what = if name.is_empty() { "this job".into() } else { format!("class {name}") };
        tell!("discnice: {what} has less than that: {} permits no more", discnice_paths::SITE);
    }
    permitted
}

/// Those limits without a line; of a class of a job's own, which stands in no configuration, without its name.
#[must_use]
pub fn bounded(name: &str, automatic: bool, wanted: Limits) -> Limits {
    bound(site(), if automatic { "" } else { name }, wanted)
}

fn bound(site: &File, name: &str, limits: Limits) -> Limits {
    // A part of a disk that was not measured holds back nothing.
    site.locked(name).and_then(|section| section.bound(limits).ok()).unwrap_or(limits)
}

/// Whether the site insists on refusing commands for which a limit does not hold.
#[must_use]
pub fn must_be_strict() -> bool {
    let site = site();
    site.locks_strict() && site.strict() == Some(true)
}

#[cfg(test)]
mod tests;
