//! What can go wrong with a refresh; in every case the directory is complete.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::input::{self, reason};

/// Why a directory was not refreshed.
#[derive(Debug)]
pub enum RefreshError {
    /// Something in the directory could not be kept or must not be touched: one line each.
    Refused(Vec<String>),
    /// A system call failed; the directory is as before.
    Io {
        /// What was being done, as "cannot …" goes on.
        action: &'static str,
        /// To what.
        path: String,
        /// The error.
        error: io::Error,
    },
    /// The copy of this read back different; the directory is as before.
    Differs(String),
    /// One of the others, and lines on names beside the directory that the user should look at.
    Noted {
        /// What went wrong.
        cause: Box<RefreshError>,
        /// The lines.
        notes: Vec<String>,
    },
}

impl RefreshError {
    /// Adds lines, if there are any.
    pub(super) fn with(self, notes: Vec<String>) -> Self {
        if notes.is_empty() { self } else { Self::Noted { cause: Box::new(self), notes } }
    }

    /// What went wrong, without the lines on what else is to be looked at.
    #[must_use]
    pub fn cause(&self) -> &Self {
        match self {
            Self::Noted { cause, .. } => cause.cause(),
            other => other,
        }
    }
}

impl fmt::Display for RefreshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(lines) => f.write_str(&lines.join("\n")),
            Self::Io { action, path, error } => {
                write!(f, "{path}: cannot {action}: {}", reason(error))
            }
            Self::Differs(path) => {
                write!(f, "{path}: the copy differs from the original; it was not used")
            }
            Self::Noted { cause, notes } => write!(f, "{cause}\n{}", notes.join("\n")),
        }
    }
}

impl std::error::Error for RefreshError {}

/// A name or path, for a message of one line.
pub fn printable(path: &[u8]) -> String {
    input::shown(Path::new(OsStr::from_bytes(path)))
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, RefreshError>;

/// Adds what was being done, to what, to a system call's error.
pub trait Context<T> {
    /// "PATH: cannot ACTION: reason"; the path is only made in case of an error.
    fn doing(self, action: &'static str, path: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn doing(self, action: &'static str, path: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| RefreshError::Io { action, path: path(), error: error.into() })
    }
}
