//! Checks that other users cannot put something else in the place of a directory.
//!
//! They can if they may write into any directory on the way to it, unless that one is sticky and what lies in it
//! belongs to this user or to the superuser (unlink(2), rename(2): `EPERM`). The way is walked by descriptors, so that
//! what was checked is what is used.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use discnice_sys::process::user;
use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};

/// A directory on the way is opened for its place only, so that it need not be readable.
const PLACE: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Write permission for others than the owner. An access control list that lets others write shows
/// in the group's bit.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// A directory that no other user can put another in the place of, and its path without symbolic links.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) directory: OwnedFd,
    pub(crate) path: PathBuf,
    /// The superuser's number, as user namespaces show it.
    pub(crate) superuser: u32,
    owner: u32,
}

impl Base {
    /// Returns true if it belongs to this user.
    pub(crate) fn is_own(&self) -> bool {
        self.owner == user()
    }
}

/// Opens the directory at `path`; its symbolic links are followed once.
///
/// # Errors
/// As open(2); `PermissionDenied` names the directory that its owner or writers could replace.
pub(crate) fn open(path: &Path) -> io::Result<Base> {
    let path = fs::canonicalize(path)?;
    let mut directory = openat(CWD, "/", PLACE, Mode::empty())?;
    let mut facts = fstat(&directory)?;
    // Where user namespaces hide the superuser's number, the owner of the root directory stands for
    // it.
    let superuser = facts.st_uid;
    let mut walked = PathBuf::from("/");
    check(&walked, &facts, superuser)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        directory = openat(&directory, name, PLACE, Mode::empty())?;
        facts = fstat(&directory)?;
        walked.push(name);
        check(&walked, &facts, superuser)?;
    }
    Ok(Base { directory, path, superuser, owner: facts.st_uid })
}

fn check(path: &Path, facts: &Stat, superuser: u32) -> io::Result<()> {
    let trusted = [0, superuser, user()].contains(&facts.st_uid);
    let open = facts.st_mode & OTHERS_WRITE != 0 && facts.st_mode & STICKY == 0;
    if trusted && !open {
        return Ok(());
    }
    let why = if trusted { "other users may write into it" } else { "it belongs to another user" };
    let why = format!("{}: {why}", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_whole_way_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (above, below) = (folder.path().join("above"), folder.path().join("above/below"));
        fs::create_dir_all(&below).unwrap();
        set(&below, 0o700);
        assert!(open(&below).unwrap().is_own());
        set(&above, 0o770);
        let refused = open(&below).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("above: other users may write"), "{refused}");
        set(&above, 0o1777);
        assert!(open(&below).is_ok(), "what lies in a sticky directory stays its owner's");
    }

    #[test]
    fn symbolic_links_lead_to_what_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let (open_to_all, link) = (folder.path().join("open"), folder.path().join("link"));
        fs::create_dir(&open_to_all).unwrap();
        symlink(&open_to_all, &link).unwrap();
        assert_eq!(open(&link).unwrap().path, fs::canonicalize(&open_to_all).unwrap());
        set(&open_to_all, 0o777);
        assert!(open(&link).is_err());
        assert!(open(&folder.path().join("none")).is_err());
    }
}
