//! Opening what people name: regular files only, without ever waiting for a FIFO or a tape.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use discnice_escape::Foreign;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Why a named file cannot be looked at, in the words of coreutils.
#[derive(Debug)]
pub enum InputError {
    /// A directory where a file is needed.
    IsDirectory,
    /// A device, FIFO or socket.
    NotRegular,
    /// The system call's error.
    Io(io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsDirectory => f.write_str("Is a directory"),
            Self::NotRegular => f.write_str("Not a regular file"),
            Self::Io(error) => f.write_str(&reason(error)),
        }
    }
}

impl std::error::Error for InputError {}

impl From<Errno> for InputError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The error's own text without the "(os error 2)" of the standard library.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// A path for a message of one line: as it is, or quoted if it has control characters, such as
/// newlines, or others that are not printed, or is no UTF-8, or nothing.
#[must_use]
pub fn shown(path: &Path) -> String {
    let foreign = Foreign::path(path);
    if path.as_os_str().is_empty() || !foreign.is_plain() {
        format!("{path:?}")
    } else {
        foreign.to_string()
    }
}

/// What the layers need of stat(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Device of the file system.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Opens a regular file for reading; follows symbolic links. The access time stays as it is
/// where the file is ours.
///
/// # Errors
/// As [`InputError`] says.
pub fn open(path: &Path) -> Result<(File, Facts), InputError> {
    // Without waiting for a writer of a FIFO or a carrier of a line: what it is comes after.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| rustix::fs::open(path, flags, Mode::empty());
    let fd = match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    };
    let fd: OwnedFd = fd.map_err(|error| match error {
        // What open(2) says of a socket or of a device without a driver.
        Errno::NXIO | Errno::NODEV => InputError::NotRegular,
        other => other.into(),
    })?;
    let status = rustix::fs::fstat(&fd)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(InputError::IsDirectory),
        _ => return Err(InputError::NotRegular),
    }
    let size = u64::try_from(status.st_size).unwrap_or(0);
    Ok((File::from(fd), Facts { dev: status.st_dev, ino: status.st_ino, size }))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_takes_one_line() {
        for (path, line) in [
            (&b"it's a \"name\""[..], "it's a \"name\""),
            (b"new\nline \xff", r#""new\nline \xFF""#),
            (b"odd \xff", r#""odd \xFF""#),
            ("turned \u{202e}".as_bytes(), r#""turned \u{202e}""#),
            (b"", r#""""#),
        ] {
            assert_eq!(shown(Path::new(OsStr::from_bytes(path))), line);
        }
    }
}
