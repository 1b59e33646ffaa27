//! File-cache probes: the timed read of one byte (gray-box paper, section 4.1.1).

use crate::{Errno, raw};

/// What one probe saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Time of the read in nanoseconds.
    pub nanos: u64,
    /// Time of reading the same byte again, when it certainly was in the cache.
    pub again_nanos: u64,
    /// Disk bytes that the kernel charged to this read: above 0, the page was not cached. 0 says
    /// nothing where the kernel's account is silent (FUSE, network file systems).
    pub disk_bytes: u64,
    /// The thread gave up the processor to wait. A hit never does; a miss does unless the device
    /// is as fast as memory.
    pub waited: bool,
}

/// Reads one byte at `offset`, twice, and times it. Read-ahead on the open file description is
/// switched off for good, so that a miss brings in one page; use a descriptor of your own.
///
/// # Errors
/// As pread(2); `EINVAL` beyond the end of the file.
pub fn probe(fd: i32, offset: u64) -> Result<Probe, Errno> {
    raw::expect_random(fd);
    let before = raw::usage();
    let start = raw::now();
    let count = raw::read_byte(fd, offset)?;
    let middle = raw::now();
    let after = raw::usage();
    if count == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let again = raw::now();
    raw::read_byte(fd, offset)?;
    let end = raw::now();
    Ok(Probe {
        nanos: middle - start,
        again_nanos: end - again,
        disk_bytes: after.disk_read - before.disk_read,
        waited: after.waits > before.waits,
    })
}
