//! A directory that only this user can change, held open: what lies in it is used by descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use discnice_sys::process::user;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

/// Open to its owner only.
const PRIVATE: Mode = Mode::RWXU;
const OTHERS: u32 = 0o077;

/// A private directory: it belongs to this user, and others may not even enter it.
#[derive(Debug)]
pub struct Private {
    directory: OwnedFd,
    path: PathBuf,
}

impl Private {
    /// Opens the directory `name` in another, creating it if missing. `path` is its location in
    /// messages.
    ///
    /// # Errors
    /// As mkdir(2) and open(2); `PermissionDenied` where it is not a private directory of this
    /// user.
    pub(crate) fn enter(
        above: BorrowedFd<'_>,
        name: impl AsRef<OsStr>,
        path: PathBuf,
    ) -> io::Result<Self> {
        match mkdirat(above, name.as_ref(), PRIVATE) {
            // The mask of file modes may have taken the owner's own bits.
            Ok(()) => rustix::fs::chmodat(above, name.as_ref(), PRIVATE, AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Self::existing(above, name, path)
    }

    /// Opens the directory `name` in another like [`Self::enter`]; it must exist.
    pub(crate) fn existing(
        above: BorrowedFd<'_>,
        name: impl AsRef<OsStr>,
        path: PathBuf,
    ) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let refused = || {
            let why = format!("{} is not a private directory of this user", path.display());
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        };
        let directory = match openat(above, name.as_ref(), flags, Mode::empty()) {
            // A symbolic link, something else than a directory, or another user's.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => return Err(refused()),
            opened => opened?,
        };
        let facts = fstat(&directory)?;
        if facts.st_uid != user() || facts.st_mode & OTHERS != 0 {
            return Err(refused());
        }
        Ok(Self { directory, path })
    }

    /// Opens this directory once more; none if it was removed.
    pub(crate) fn again(&self) -> Option<Self> {
        let is_there = fstat(&self.directory).is_ok_and(|facts| facts.st_nlink > 0);
        let directory = is_there.then(|| self.directory.try_clone().ok())??;
        Some(Self { directory, path: self.path.clone() })
    }

    /// Its path, for people and for programs that take no descriptor: no other user can put another directory
    /// there.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it, made where it is missing.
    ///
    /// # Errors
    /// As mkdir(2) and open(2); `PermissionDenied` where something else is there.
    pub fn directory(&self, name: &str) -> io::Result<Self> {
        Self::enter(self.directory.as_fd(), name, self.path.join(name))
    }

    /// Opens a file in it; one that is made is its owner's only. Never waits, whatever is there.
    ///
    /// # Errors
    /// As open(2); `PermissionDenied` where something else than a file of this user is there.
    pub fn open(&self, name: impl AsRef<OsStr>, flags: OFlags) -> io::Result<File> {
        let name = name.as_ref();
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR);
        let refused = |what: &str| {
            let path = self.path.join(name);
            let why = format!("{} is {what}; move it away", path.display());
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        };
        let file = match opened {
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(refused("no plain file")),
            opened => opened?,
        };
        match fault(&fstat(&file)?) {
            None => Ok(file.into()),
            Some(what) => Err(refused(what)),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As unlink(2).
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.directory, name.as_ref(), AtFlags::empty())?)
    }

    /// Gives a file another name, in the place of whatever has it.
    ///
    /// # Errors
    /// As rename(2).
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(renameat(&self.directory, from.as_ref(), &self.directory, to.as_ref())?)
    }

    /// The names of all that lies in it.
    ///
    /// # Errors
    /// As getdents(2).
    pub fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        names(self.directory.as_fd())
    }

    /// The path of `name` in it for calls that take no descriptor, such as bind(2) and connect(2): valid in this
    /// process, as long as this value lives.
    #[must_use]
    pub fn by_descriptor(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()))
    }
}

impl AsFd for Private {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// What is wrong with something that should be a file of this user.
fn fault(facts: &Stat) -> Option<&'static str> {
    if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
        return Some("no plain file");
    }
    if facts.st_uid != user() {
        return Some("another user's");
    }
    (facts.st_mode & OTHERS != 0).then_some("open to other users")
}

/// The names in a directory that is open for reading or for its place.
pub(crate) fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(directory, c".", flags, Mode::empty())?;
    let mut buffer = Vec::with_capacity(1 << 15);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn scene() -> (tempfile::TempDir, Private) {
        let folder = tempfile::tempdir().unwrap();
        let above = File::open(folder.path()).unwrap();
        let private = Private::enter(above.as_fd(), "own", folder.path().join("own")).unwrap();
        (folder, private)
    }

    #[test]
    fn only_what_is_private_is_entered() {
        let (folder, private) = scene();
        let above = File::open(folder.path()).unwrap();
        let enter = |name: &str| Private::enter(above.as_fd(), name, folder.path().join(name));
        assert!(enter("own").is_ok(), "again");
        symlink(private.path(), folder.path().join("link")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        fs::create_dir(folder.path().join("open")).unwrap();
        fs::set_permissions(folder.path().join("open"), PermissionsExt::from_mode(0o750)).unwrap();
        for name in ["link", "file", "open"] {
            let refused = enter(name).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
        }
    }

    #[test]
    fn only_plain_files_of_this_user_are_opened() {
        let (_folder, private) = scene();
        let open = |name: &str| private.open(name, OFlags::RDWR | OFlags::CREATE);
        assert!(open("new").is_ok());
        assert_eq!(
            fs::metadata(private.path().join("new")).unwrap().permissions().mode() & 0o777,
            0o600
        );
        symlink("new", private.path().join("link")).unwrap();
        rustix::fs::mkfifoat(&private, "fifo", Mode::RWXU).unwrap();
        private.directory("directory").unwrap();
        fs::write(private.path().join("open"), "").unwrap();
        fs::set_permissions(private.path().join("open"), PermissionsExt::from_mode(0o666)).unwrap();
        for name in ["link", "fifo", "directory", "open"] {
            let refused = open(name).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
            assert!(refused.to_string().ends_with("; move it away"), "{refused}");
        }
        let mut names = private.names().unwrap();
        names.sort_unstable();
        assert_eq!(names, [&b"directory"[..], b"fifo", b"link", b"new", b"open"]);
    }
}
