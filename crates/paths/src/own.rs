//! Files that outlive the machine's run: configuration, host profile, progress targets.
//!
//! Where they lie follows from variables of the environment, which `sudo -E` and `su` take along to another user. So a
//! file is read only if this user or the superuser wrote it, and a directory is used only where one of both would make it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use discnice_sys::process::user;
use rustix::fs::OFlags;

/// Others may write.
const OPEN: u32 = 0o002;

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
    if !facts.is_file() {
        return wrong(io::ErrorKind::InvalidData, "it is no plain file; move it away".to_owned());
    }
    if facts.mode() & OPEN != 0 {
        let why = "all users may write it; take that away (chmod o-w) and look what it says";
        return wrong(io::ErrorKind::InvalidData, why.to_owned());
    }
    if facts.len() > longest {
        return wrong(io::ErrorKind::InvalidData, format!("it is longer than {longest} bytes"));
    }
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
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
}
