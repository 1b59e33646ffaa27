//! Errors of the kernel as those of the standard library.

use std::io;

use crate::pagecache::Errno;

pub(super) fn from_errno(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.0)
}
