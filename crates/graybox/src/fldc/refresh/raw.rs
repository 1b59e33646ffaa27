//! System calls without a safe wrapper.
#![allow(unsafe_code, reason = "sync_file_range and fcntl(F_SETLEASE) have no safe wrapper")]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The signal that tells a lease holder of another opener (fcntl(2), asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;

/// Sends the file's dirty pages on their way to the disk. Without delay the file system chooses
/// their place now, not in the order that write-back likes. Where it is refused, the final sync
/// does the work.
pub fn start_writing(file: &File) {
    // SAFETY: plain numbers; the call starts the writing of the descriptor's own dirty pages.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Why a lease was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {
    /// Another descriptor has the file open or mapped.
    InUse,
    /// The file system has no leases, or they are switched off or not allowed for this file.
    Unknown,
}

/// A write lease on a regular file, given back when dropped. The kernel grants it only while no
/// other descriptor of any process has the file open or mapped, and makes later openers wait.
#[derive(Debug)]
pub struct Lease<'a>(BorrowedFd<'a>);

impl<'a> Lease<'a> {
    /// Takes the lease on the file of this descriptor, which must be the only one.
    ///
    /// # Errors
    /// As [`NoLease`] says.
    pub fn take(fd: BorrowedFd<'a>) -> Result<Self, NoLease> {
        // SAFETY: plain numbers. An opener makes the kernel send the signal set here, SIGURG,
        // which is ignored unless a handler is set; without, it were SIGIO, which kills.
        let rc = unsafe {
            libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGURG);
            libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        match rc {
            0 => Ok(Self(fd)),
            _ => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => Err(NoLease::InUse),
                _ => Err(NoLease::Unknown),
            },
        }
    }

    /// True if no opener waits for the lease to be given back, nor has waited so long that the
    /// kernel broke it.
    pub fn is_unbroken(&self) -> bool {
        // SAFETY: plain numbers.
        let kind = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) };
        kind == libc::F_WRLCK
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // SAFETY: plain numbers.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}
