//! Where the state of a user lives (XDG Base Directory Specification): the one place that knows.
//!
//! - [`runtime`](fn@runtime): the private directory of what lives no longer than the machine runs;
//! - [`targets`], [`refreshes`], [`profile`], [`config`]: files that outlive it, and [`read_own`], which reads them;
//! - [`SITE`]: the site's settings, and [`read_site`], which reads them;
//! - [`folder_of`], [`fnv1a`]: the parts and the numbers of names;
//! - [`Private`]: a directory that only this user can change, held open.

mod chain;
mod own;
mod private;
mod runtime;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub use own::{read_own, read_site};
pub use private::Private;
pub use runtime::{keep_runtime, name_in_space, runtime};

/// The folder of a file that a user named: the working directory for a name alone.
#[must_use]
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// FNV-1a, 64 bits: enough to notice damage and to tell names apart, and the same on each machine and in each version.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The directory of progress targets: `$XDG_STATE_HOME/discnice/targets`, or below
/// `~/.local/state`; `None` for a user without a home.
#[must_use]
pub fn targets() -> Option<PathBuf> {
    Some(below("XDG_STATE_HOME", ".local/state")?.join("targets"))
}

/// The directory of what `refresh --when-worth` has seen: `$XDG_STATE_HOME/discnice/refresh`, or below
/// `~/.local/state`; `None` for a user without a home.
#[must_use]
pub fn refreshes() -> Option<PathBuf> {
    Some(below("XDG_STATE_HOME", ".local/state")?.join("refresh"))
}

/// The file of the host profile: `$XDG_CACHE_HOME/discnice/profile.toml`, or below `~/.cache`;
/// `None` for a user without a home.
#[must_use]
pub fn profile() -> Option<PathBuf> {
    Some(below("XDG_CACHE_HOME", ".cache")?.join("profile.toml"))
}

/// The user's settings: `$XDG_CONFIG_HOME/discnice/config.toml`, or below `~/.config`; `None` for a user without a
/// home.
#[must_use]
pub fn config() -> Option<PathBuf> {
    Some(below("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
}

/// Names the folder of the user's settings without a look at it: it may lie where that waits.
#[must_use]
pub fn config_folder() -> Option<PathBuf> {
    named("XDG_CONFIG_HOME", ".config")
}

/// The site's settings, which no variable changes.
pub const SITE: &str = "/etc/discnice/config.toml";

/// Makes `directory` and what is missing above it, open to its owner only.
///
/// # Errors
/// As mkdir(2), except that it may exist already.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Returns our directory in the one that `variable` names, or in that of the home. `None` if that
/// is another user's, with an environment that this process inherited.
fn below(variable: &str, in_home: &str) -> Option<PathBuf> {
    named(variable, in_home).filter(|directory| own::is_ours(directory))
}

fn named(variable: &str, in_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(in_home)))?;
    Some(base.join("discnice"))
}

/// An environment variable as a path; the XDG specification says to ignore relative ones.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
