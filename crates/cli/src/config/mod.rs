//! Settings: the site's, `/etc/discnice/config.toml`, and over them the user's, `$XDG_CONFIG_HOME/discnice/config.toml`.
//!
//! The user's keys replace the site's one by one. What the site has locked they can only tighten, as options can
//! (docs/adr/0028-site.md).

mod busy;
mod entry;
mod file;
mod place;
pub mod rules;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use discnice_ledger::policy::Limits;
use discnice_progress::model::Setting;
use rustix::process::geteuid;

pub use busy::Busy;
pub use file::File;

use crate::commands::limits::LimitArgs;
use crate::output::tell;
use crate::polite;

/// A longer file is no configuration.
const LONGEST: u64 = 1 << 20;

/// The settings of both.
#[derive(Debug)]
pub struct Config {
    own: File,
    site: Arc<File>,
}

impl Config {
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

fn own() -> anyhow::Result<File> {
    let Some(path) = discnice_paths::config() else { return Ok(File::default()) };
    match discnice_paths::read_own(&path, LONGEST) {
        Ok(bytes) => File::parse_bytes(&bytes, &path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_ours(&path) => {
            Ok(File::default())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether a file's folder is this user's. Another user's is not to be read where HOME was kept (su, setpriv).
fn is_ours(path: &Path) -> bool {
    let owner = path.parent().and_then(|folder| Some(folder.metadata().ok()?.uid()));
    owner == Some(geteuid().as_raw())
}

/// The site's file. One that is wrong is told of and not followed: users cannot mend it, and their jobs are to run.
fn site() -> &'static Arc<File> {
    static SITE: OnceLock<Arc<File>> = OnceLock::new();
    SITE.get_or_init(|| Arc::new(read_site()))
}

fn read_site() -> File {
    let path = Path::new(discnice_paths::SITE);
    let read = discnice_paths::read_site(path, LONGEST);
    let found = match read {
        Ok(bytes) => File::parse_bytes(&bytes, path),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return File::default();
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    found.unwrap_or_else(|error| {
        tell!("discnice: the site's settings are not used: {error:#}; tell its administrator");
        File::default()
    })
}

#[cfg(test)]
mod tests {
    use discnice_ledger::policy::{Resource, When};
    use discnice_units::{Bytes, Rate};

    use super::*;
    use crate::presets;

    const SITE: &str = "strict = true\nlocked = [\"class.held\", \"class.each\", \"default\", \"strict\"]\n\
        [default]\ndisk = \"20M\"\nguest = true\n\
        [class.held]\ndisk = \"10M\"\ndisk-total = \"5G\"\nmeta-ops = 100\nwhen = \"always\"\nmessage = \"slowly\"\nfleet = \"redis://h/a\"\n\
        [class.each]\ndisk = \"10M\"\nwhen = \"busy\"\nper-child = true\n\
        [class.free]\ndisk = \"10M\"\nmeta-ops = 100\nfleet = \"redis://h/b\"\n";

    fn config(own: &str) -> Config {
        let parse = |text| File::parse(text, Path::new("config.toml")).unwrap();
        Config { own: parse(own), site: Arc::new(parse(SITE)) }
    }

    #[test]
    fn presets_are_ours_or_the_user_s() {
        let config = config("[preset.scan]\nmeta-ops = 7\n[preset.mine]\ndisk = \"9M\"\n");
        let limits = |name| presets::limits(&config, name);
        let seven = Rate::per_second(7);
        assert_eq!(limits("scan").unwrap().rate(Resource::Metadata), seven, "instead of ours");
        let mine = limits("mine").unwrap();
        assert_eq!(mine.rate(Resource::Total), Rate::per_second(9 * MIB));
        assert_eq!(mine.when(), When::Busy, "over the polite default");
        let why = limits("bakup").unwrap_err().to_string();
        assert!(
            why.contains("did you mean backup? there are agent, backup,") && why.contains("mine"),
            "{why}"
        );
        let wrong = File::parse("[preset.a]\nfleet = \"redis://h/a\"\n", Path::new("c"));
        assert!(wrong.unwrap_err().to_string().starts_with("c:1:9: preset a: only limits"));
    }

    fn rates(limits: Limits) -> (Rate, Rate, Rate) {
        (limits.rate(Resource::Total), limits.rate(Resource::Read), limits.rate(Resource::Metadata))
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn users_change_what_is_not_locked_key_by_key() {
        let own = "[class.free]\ndisk-read = \"30M\"\nmeta-ops = 500\nfleet = \"redis://h/c\"\n[class.mine]\ndisk = \"1G\"\n";
        let config = config(own);
        let free = config.class("free").unwrap().unwrap();
        let ten = Rate::per_second(10 * MIB);
        assert_eq!(rates(free), (ten, ten, Rate::per_second(500)), "no part above the whole");
        assert_eq!(config.fleet("free"), Some("redis://h/c"));
        assert_eq!(config.message("held"), Some("slowly"));
        let all: Vec<_> = config.fleets().collect();
        assert_eq!(all, [("free", "redis://h/c"), ("held", "redis://h/a")]);
        assert_eq!(config.class("none").unwrap(), None);
    }

    #[test]
    fn users_only_tighten_what_is_locked() {
        let loose = "strict = false\n[class.held]\ndisk = \"1G\"\nmeta-ops = 50\nwhen = \"busy\"\nfleet = \"redis://h/mine\"\n";
        let config = config(loose);
        assert!(config.strict());
        let held = config.class("held").unwrap().unwrap();
        assert_eq!(held.rate(Resource::Total), Rate::per_second(10 * MIB));
        assert_eq!(held.rate(Resource::Metadata), Rate::per_second(50));
        assert_eq!(held.when(), When::Always);
        assert_eq!(config.fleet("held"), Some("redis://h/a"));
        let gib = |many: u64| Some(Bytes::new(many << 30));
        let total = |many| {
            bound(&config.site, "held", Limits::UNLIMITED.with_disk_total(many)).disk_total()
        };
        assert_eq!([total(None), total(gib(9)), total(gib(1))], [gib(5), gib(5), gib(1)]);
        // What the site does not name has the default's lock.
        let wide = Limits::UNLIMITED.with(Resource::Write, Rate::per_second(90 * MIB));
        let bounded = bound(&config.site, "mine", wide);
        let twenty = Rate::per_second(20 * MIB);
        assert_eq!(
            (bounded.rate(Resource::Total), bounded.rate(Resource::Write)),
            (twenty, twenty)
        );
        assert!(bounded.guest());
        // Neither holds less often, nor for each child, unless the site says so.
        let busy = Limits::UNLIMITED.with_when(When::Busy).with_per_child(true);
        let loosened = |name| {
            let bounded = bound(&config.site, name, busy);
            (bounded.when(), bounded.per_child())
        };
        assert_eq!(loosened("mine"), (When::Always, false));
        assert_eq!(loosened("each"), (When::Busy, true));
        assert_eq!(loosened("free"), (When::Busy, true));
        assert_eq!(bound(&config.site, "free", wide), wide);
    }
}
