//! File-cache probes: the timed access to one byte (gray-box paper, section 4.1.1).

use discnice_sys::pagecache::{timed_fault, timed_read};
use discnice_sys::process::thread_usage_and_waits;

use crate::pagecache::Errno;

//= gray-box/2-observe
/// What one probe saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Time of the access in nanoseconds.
    pub nanos: u64,
    /// Time of the same access again, when the page certainly was in the cache.
    pub again_nanos: u64,
    /// Disk bytes that the kernel charged to this access: above 0, the page was not cached. 0
    /// says nothing where the kernel's account is silent (FUSE, network file systems).
    pub disk_bytes: u64,
    /// The thread gave up the processor to wait. A hit never does; a miss does unless the device
    /// is as fast as memory.
    pub waited: bool,
}

/// Accesses the byte at `offset`, twice, and times it. A miss brings in one page and no
/// read-ahead.
///
/// The paper reads; we fault the page in, for the reason told at [`timed_fault`], and read where
/// the file system cannot map or the kernel (before 5.14) cannot populate. A descriptor that had
/// to be read loses its read-ahead for good: use one of your own.
///
/// # Errors
/// As mmap(2) and pread(2); `EFAULT` beyond the end of the file.
pub fn probe(fd: i32, offset: u64) -> Result<Probe, Errno> {
    match probe_by(timed_fault, fd, offset) {
        Err(Errno(libc::ENODEV | libc::EINVAL | libc::EACCES | libc::EPERM)) => {
            probe_by(timed_read, fd, offset)
        }
        other => other,
    }
}

type Access = fn(i32, u64) -> Result<u64, Errno>;

fn probe_by(access: Access, fd: i32, offset: u64) -> Result<Probe, Errno> {
    let (before, waits) = thread_usage_and_waits();
    let nanos = access(fd, offset)?;
    let (after, waits_after) = thread_usage_and_waits();
    let again_nanos = access(fd, offset)?;
    let disk_bytes = after.read - before.read;
    Ok(Probe { nanos, again_nanos, disk_bytes, waited: waits_after > waits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn both_ways_tell_the_end_of_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"x").unwrap();
        let page = crate::pagecache::page_size();
        for access in [timed_fault as Access, timed_read] {
            assert!(probe_by(access, file.as_raw_fd(), 0).is_ok());
            assert_eq!(probe_by(access, file.as_raw_fd(), page), Err(Errno(libc::EFAULT)));
        }
    }
}
