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

/// Whether somebody else, of whatever user, has the regular file open or mapped: the kernel
/// grants a write lease only to the sole opener. `false` where leases are not supported or not
/// allowed.
pub fn is_open_elsewhere(fd: BorrowedFd<'_>) -> bool {
    let (set, write, none) = (libc::F_SETLEASE, libc::F_WRLCK, libc::F_UNLCK);
    // SAFETY: plain numbers. Whoever opens the file while we hold the lease makes the kernel send
    // the signal set here, SIGURG, which is ignored unless somebody asks for it; without, it were
    // SIGIO, which kills. The opener waits for the microseconds until the lease is given back.
    let rc = unsafe {
        libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(fd.as_raw_fd(), set, write)
    };
    if rc == 0 {
        // SAFETY: plain numbers.
        unsafe { libc::fcntl(fd.as_raw_fd(), set, none) };
        return false;
    }
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}
