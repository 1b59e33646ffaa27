//! Where the state of a user lives (XDG Base Directory Specification): the one place that knows.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use discnice_sys::process::user;

/// The directory of progress targets: `$XDG_STATE_HOME/discnice/targets`, or below
/// `~/.local/state`; `None` for a user without a home.
#[must_use]
pub fn targets() -> Option<PathBuf> {
    Some(below("XDG_STATE_HOME", ".local/state")?.join("targets"))
}

/// The file of the host profile: `$XDG_CACHE_HOME/discnice/profile.toml`, or below `~/.cache`;
/// `None` for a user without a home.
#[must_use]
pub fn profile() -> Option<PathBuf> {
    Some(below("XDG_CACHE_HOME", ".cache")?.join("profile.toml"))
}

/// The directory of shared memory: `$XDG_RUNTIME_DIR/discnice`, or without that variable a
/// directory under `/tmp`. It is made where it is missing.
///
/// # Errors
/// Also where the directory is not the user's own or others may enter it: what lies in it could
/// then be anybody's.
pub fn runtime() -> io::Result<PathBuf> {
    let directory = absolute("XDG_RUNTIME_DIR").map_or_else(
        || PathBuf::from(format!("/tmp/discnice-{}", user())),
        |runtime| runtime.join("discnice"),
    );
    private_directory(&directory)?;
    check(&directory)?;
    Ok(directory)
}

fn check(directory: &Path) -> io::Result<()> {
    // Of a symbolic link, what it leads to is not looked at: it could lead elsewhere next time.
    let found = fs::symlink_metadata(directory)?;
    if found.is_dir() && found.uid() == user() && found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("{} is not a private directory of this user", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Makes `directory` and what is missing above it, open to its owner only.
///
/// # Errors
/// As mkdir(2), except that it may exist already.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Our directory in the one that `variable` names, or in that of the home.
fn below(variable: &str, in_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(in_home)))?;
    Some(base.join("discnice"))
}

/// An environment variable as a path; the XDG specification says to ignore relative ones.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_private_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("a/b");
        private_directory(&ours).unwrap();
        private_directory(&ours).unwrap();
        assert!(check(&ours).is_ok());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        assert!(check(&link).is_err());
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(check(&ours).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(check(&folder.path().join("file")).is_err());
    }
}
