//! Tells which files can be examined without waiting for another process: those that the kernel
//! alone serves.
//!
//! A daemon that serves a file system (FUSE) may be below the same filter as its clients. Then its
//! own calls must be received while it is asked.

use std::sync::{Mutex, PoisonError};

use discnice_sys::Errno;
use discnice_sys::file::{self, FileKind, Status};
use discnice_sys::time;
use discnice_units::{Moment, Nanos};

use crate::lead::may_take_long;

/// File systems that are remembered.
const REMEMBERED: usize = 64;
/// For how long: the number of one that has no device is given to another some time after it was unmounted.
const VALID: Nanos = Nanos::SECOND;

/// A file system that was asked about.
#[derive(Debug, Clone, Copy)]
struct Known {
    device: u64,
    is_local: bool,
    at: Moment,
}

/// What is known of file systems. Each supervisor has its own: a lock that another thread holds while the process is copied
/// ([`crate::pair`]) is held for ever in the copy.
#[derive(Debug, Default)]
pub struct Places(Mutex<Vec<Known>>);

impl Places {
    /// Returns what a descriptor is, and true if the kernel alone serves it. Otherwise its daemon or
    /// server is asked, which may take long.
    ///
    /// # Errors
    /// As [`file::status`].
    pub fn status(&self, fd: i32) -> Result<(Status, bool), Errno> {
        if let Ok(status) = file::status_as_known(fd)
            && (status.kind == FileKind::Other || self.is_local(status.device, fd))
        {
            return Ok((status, true));
        }
        may_take_long();
        Ok((file::status(fd)?, false))
    }

    fn is_local(&self, device: u64, fd: i32) -> bool {
        let now = time::now();
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let valid = |known: &&Known| known.device == device && now.since(known.at) < VALID;
        if let Some(known) = known().iter().find(valid) {
            return known.is_local;
        }
        may_take_long();
        let is_local = file::is_local(fd);
        let mut all = known();
        all.retain(|known| known.device != device);
        all.truncate(REMEMBERED - 1);
        all.insert(0, Known { device, is_local, at: now });
        is_local
    }
}
