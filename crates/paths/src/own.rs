//! Files that outlive the machine's run: configuration, host profile, progress targets.
//!
//! Where they lie follows from variables of the environment, which `sudo -E` and `su` take along to another user. So a
//! file is read only if this user or the superuser wrote it, and a directory is used only where one of both would make it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use discnice_sys::process::user;
use rustix::fs::{Access, Mode, OFlags, access, openat};

use crate::chain;

/// Others may write.
const OPEN: u32 = 0o002;
/// Others may write, or a group.
const OTHERS: u32 = 0o022;

/// Reads a file of at most `longest` bytes that this user or the superuser owns. Never waits, whatever is there.
///
/// # Errors
/// As open(2); `PermissionDenied` for a file of another user, or one that all may write; `InvalidData` for what is no
/// plain file, or longer.
pub fn read_own(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let facts = file.metadata()?;
    let wrong = |kind, why: String| Err(io::Error::new(kind, why));
    if ![0, user()].contains(&facts.uid()) {
        return wrong(io::ErrorKind::PermissionDenied, "it belongs to another user".to_owned());
    }
    if facts.is_file() && facts.mode() & OPEN != 0 {
        let why = "all users may write it; take that away (chmod o-w) and look what it says";
        return wrong(io::ErrorKind::InvalidData, why.to_owned());
    }
    contents(file, &facts, longest)
}

/// What stands in a plain file of at most `longest` bytes.
fn contents(file: File, facts: &Metadata, longest: u64) -> io::Result<Vec<u8>> {
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if !facts.is_file() {
        return wrong("it is no plain file; move it away".to_owned());
    }
    if facts.len() > longest {
        return wrong(format!("it is longer than {longest} bytes"));
    }
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of at most `longest` bytes that only the superuser can change, or put another in the place of: neither the
/// file nor any directory on the way to it, after its symbolic links, may be written by others.
///
/// # Errors
/// As open(2); `PermissionDenied` for what others can change; `InvalidData` for what is no plain file, or longer.
pub fn read_site(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    // Most machines have none.
    access(path, Access::EXISTS)?;
    let path = fs::canonicalize(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let folder = chain::open(folder)?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(&folder.directory, name, flags, Mode::empty())?);
    let facts = file.metadata()?;
    let denied = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if ![0, folder.superuser].contains(&facts.uid()) {
        return denied("it does not belong to the superuser (chown root)");
    }
    if facts.mode() & OTHERS != 0 {
        return denied("others than its owner may write it (chmod go-w)");
    }
    contents(file, &facts, longest)
}

/// Returns true if a directory, or the first above it that exists, is this user's or the
/// superuser's. In another user's, this user would read what that one wrote, and leave behind files
/// that that one cannot change.
pub(crate) fn is_ours(directory: &Path) -> bool {
    let existing = directory.ancestors().find_map(|one| fs::metadata(one).ok());
    existing.is_none_or(|facts| [0, user()].contains(&facts.uid()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_short_plain_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "text").unwrap();
        assert_eq!(read_own(&path("good"), 4).unwrap(), b"text");
        std::os::unix::fs::symlink("good", path("link")).unwrap();
        assert_eq!(read_own(&path("link"), 4).unwrap(), b"text", "as people keep their settings");
        fs::write(path("open"), "text").unwrap();
        fs::set_permissions(path("open"), PermissionsExt::from_mode(0o666)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RWXU).unwrap();
        File::create(path("huge")).unwrap().set_len(4 << 30).unwrap();
        for name in ["open", "fifo", "huge"] {
            let refused = read_own(&path(name), 1 << 20).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{name}: {refused}");
        }
        assert!(read_own(folder.path(), 4).is_err(), "a directory");
        assert_eq!(read_own(&path("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_what_the_superuser_alone_can_change_is_the_sites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        fs::write(&path, "text").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
        set(&path, 0o644).unwrap();
        let read = || read_site(&path, 4).map_err(|error| error.to_string());
        if user() == 0 {
            assert_eq!(read(), Ok(b"text".to_vec()));
            std::os::unix::fs::symlink("settings", folder.path().join("link")).unwrap();
            assert_eq!(read_site(&folder.path().join("link"), 4).unwrap(), b"text");
            set(folder.path(), 0o777).unwrap();
            assert!(read().unwrap_err().contains("other users may write into it"));
            set(folder.path(), 0o755).unwrap();
            set(&path, 0o664).unwrap();
            assert!(read().unwrap_err().contains("others than its owner may write it"));
            std::os::unix::fs::chown(&path, Some(61_001), None).unwrap();
        }
        assert!(read().unwrap_err().contains("does not belong to the superuser"));
        assert_eq!(read_site(Path::new("/none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
