//! Where per-user state lives.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of progress targets: `$XDG_STATE_HOME/discnice/targets`, or below
/// `~/.local/state`; `None` for a user without a home.
#[must_use]
pub fn targets() -> Option<PathBuf> {
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("discnice/targets"))
}

/// The directory of shared memory: `$XDG_RUNTIME_DIR/discnice`, or without that variable a
/// directory under `/tmp`. It is made where it is missing.
///
/// # Errors
/// Also where the directory is not the user's own or others may enter it: what lies in it could
/// then be anybody's.
pub fn runtime() -> io::Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let directory = absolute("XDG_RUNTIME_DIR").map_or_else(
        || PathBuf::from(format!("/tmp/discnice-{uid}")),
        |runtime| runtime.join("discnice"),
    );
    private_directory(&directory)?;
    let found = fs::symlink_metadata(&directory)?;
    if !found.is_dir() || found.uid() != uid || found.permissions().mode() & 0o077 != 0 {
        let why = format!("{} is not a private directory of this user", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(directory)
}

/// Makes `directory` and what is missing above it, open to its owner only.
///
/// # Errors
/// As mkdir(2), except that it may exist already.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// An environment variable as a path; the XDG specification says to ignore relative ones.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
