//! Why a file is left as it is.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::input::reason;

/// Why a file was not rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The file changed between its scan and its exchange.
    Changed,
    /// The file is open or mapped in another process.
    InUse,
    /// The file system does not tell whether it is in use.
    NoLease,
    /// The file is gone, or replaced by another.
    Vanished,
    /// A property that a copy could not have, or that forbids touching it.
    Property(&'static str),
    /// A system call failed.
    Failed(Errno),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("changed during the refresh"),
            Self::InUse => f.write_str("in use by another process"),
            Self::NoLease => f.write_str("no leases here, so it may be in use; --force"),
            Self::Vanished => f.write_str("vanished during the refresh"),
            Self::Property(text) => f.write_str(text),
            Self::Failed(error) => f.write_str(&reason(&io::Error::from(*error))),
        }
    }
}

impl From<Errno> for Why {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::STALE | Errno::LOOP | Errno::NOTDIR => Self::Vanished,
            // Another process has a lease of its own.
            Errno::AGAIN => Self::InUse,
            // A work area is in one subvolume and one project (PROJINHERIT).
            Errno::XDEV => Self::Property("of another subvolume or project than the directory"),
            other => Self::Failed(other),
        }
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            // The file was cut short while it was read.
            None => Self::Changed,
        }
    }
}

impl Why {
    /// Returns true if another attempt may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Changed | Self::InUse)
    }

    /// Returns the error if it would occur with every other file, too, and thus ends the refresh.
    pub fn is_of_all(&self) -> Option<Errno> {
        match self {
            Self::Failed(
                error @ (Errno::NOSPC
                | Errno::DQUOT
                | Errno::IO
                | Errno::ROFS
                | Errno::NOMEM
                | Errno::MFILE
                | Errno::NFILE),
            ) => Some(*error),
            _ => None,
        }
    }
}
