//! Rules: which class a process enters that no command of ours started.
//!
//! ```toml
//! include = ["indexers"]         # a file of rules: of DiscNice, or the path of one
//!
//! [[rule]]
//! match = { exe = "kf6/baloo_file*" }
//! class = "indexers"
//! limits = { disk = "2M" }       # if there is no [class.indexers]
//!
//! [[rule]]
//! match = { cgroup = "app-*.scope", cmdline = "* --now" }
//! except = true                  # left alone
//! ```
//!
//! The first that matches decides: of the user's file, then of what that includes, then of the site's in the same way; with
//! `locked = ["rules"]` the site's come first.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use discnice_ledger::policy::Limits;
use discnice_watcher::daemon::rules::{Loaded, Outcome, Rule};
use toml::Spanned;

use super::entry::Entry;
use super::read::LONGEST;
use super::{ConfigFiles, File, bound};
use crate::commands::limits::LimitArgs;
use crate::output::tell;

/// A folder of rule files.
const FOLDER: &str = "discnice/rules";

impl Entry {
    fn rule(&self, config: &ConfigFiles) -> anyhow::Result<Rule> {
        let outcome = match &self.class {
            None => Outcome::LeaveAlone,
            Some(name) => {
                let limits =
                    limits_of(config, name.as_ref(), self.limits.as_ref().map(Spanned::as_ref));
                let limits = limits.with_context(|| self.place.clone())?;
                Outcome::Enter(name.as_ref().clone(), Box::new(limits))
            }
        };
        let conditions = self.r#match.as_ref().clone();
        Ok(Rule { conditions, outcome, place: self.place.clone() })
    }
}

/// The limits that a class is made with: its section's, else the rule's, else the default.
fn limits_of(config: &ConfigFiles, name: &str, own: Option<&LimitArgs>) -> anyhow::Result<Limits> {
    if let Some(limits) = config.class(name)? {
        return Ok(limits);
    }
    let limits = own.map_or_else(|| config.default_limits(), |own| config.limits_of_new(own))?;
    Ok(bound(&config.site, name, limits))
}

/// Reads all rules anew, and the configuration with them: files may have changed since this process began.
#[must_use]
pub fn load() -> (Loaded, Option<ConfigFiles>) {
    let mut files = vec![PathBuf::from(discnice_paths::SITE)];
    files.extend(discnice_paths::config());
    let config = ConfigFiles::anew();
    let rules = match &config {
        Ok(config) => all(config, &mut files).map_err(|error| format!("{error:#}")),
        Err(error) => Err(format!("{error:#}")),
    };
    (Loaded { rules, files }, config.ok())
}

/// All of them, in their order.
fn all(config: &ConfigFiles, files: &mut Vec<PathBuf>) -> anyhow::Result<Vec<Rule>> {
    let own = Reader { trust: discnice_paths::read_own, folders: own_folders() };
    let site = Reader { trust: discnice_paths::read_site, folders: site_folders() };
    let own = own.included(&config.own, files)?;
    // As all that is wrong with the site's settings: users cannot mend it.
    let site = site.included(&config.site, files).unwrap_or_else(|error| {
        tell!("discnice: rules of the site are not used: {error:#}; tell its administrator");
        Vec::new()
    });
    let own = config.own.rules().iter().chain(&own);
    let site = config.site.rules().iter().chain(&site);
    let each = |entry: &Entry| entry.rule(config);
    if config.site.locks_rules() {
        return site.chain(own).map(each).collect();
    }
    own.chain(site).map(each).collect()
}

/// How the files of rules are read that a configuration includes.
struct Reader {
    /// Reads a file that no other user can have written.
    trust: fn(&Path, u64) -> io::Result<Vec<u8>>,
    /// Where a name is looked for.
    folders: Vec<PathBuf>,
}

/// The user's folder, and those of DiscNice.
fn own_folders() -> Vec<PathBuf> {
    let own = discnice_paths::config().and_then(|path| Some(path.parent()?.join("rules")));
    own.into_iter().chain(shipped()).collect()
}

/// The site's folder, and those of DiscNice.
fn site_folders() -> Vec<PathBuf> {
    let site = Path::new(discnice_paths::SITE).parent().map(|folder| folder.join("rules"));
    site.into_iter().chain(shipped()).collect()
}

/// Where `make install` and packages put them: beside the program, else in the usual places.
fn shipped() -> impl Iterator<Item = PathBuf> {
    let program = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let prefix = program.and_then(|path| Some(path.parent()?.parent()?.join("share")));
    let usual = ["/usr/local/share", "/usr/share"].map(PathBuf::from);
    prefix.into_iter().chain(usual).map(|share| share.join(FOLDER))
}

impl Reader {
    /// The rules of the files that `file` includes; each path that was tried is added to `files`.
    fn included(&self, file: &File, files: &mut Vec<PathBuf>) -> anyhow::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for name in file.includes() {
            let places = self.places(name);
            files.extend(places.iter().cloned());
            let Some((path, bytes)) = self.find(&places)? else {
                let tried: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
                bail!("include: there is no {}", tried.join(" or "));
            };
            entries.extend(File::parse_rules(&bytes, &path)?);
        }
        Ok(entries)
    }

    fn places(&self, name: &str) -> Vec<PathBuf> {
        if name.starts_with('/') {
            return vec![PathBuf::from(name)];
        }
        let mut places: Vec<PathBuf> =
            self.folders.iter().map(|folder| folder.join(format!("{name}.toml"))).collect();
        places.dedup();
        places
    }

    fn find(&self, places: &[PathBuf]) -> anyhow::Result<Option<(PathBuf, Vec<u8>)>> {
        for path in places {
            match (self.trust)(path, LONGEST) {
                Ok(bytes) => return Ok(Some((path.clone(), bytes))),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
