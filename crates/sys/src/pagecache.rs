//! What the kernel tells of the page cache: cachestat(2), mincore(2), and how long an access takes.

use crate::file::{self, Status};
use crate::raw::{Errno, call};
use crate::residency::{self, Mapping};
use crate::time;

/// What cachestat(2) counts, in pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pages in the cache, including those still being read.
    pub cached: u64,
    /// Pages that are dirty.
    pub dirty: u64,
    /// Pages being written back.
    pub writeback: u64,
    /// Pages that have been evicted and left a trace.
    pub evicted: u64,
    /// Evicted pages that would count as a refault of the working set.
    pub recently_evicted: u64,
}

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// System call number, equal on every architecture; not yet among libc's constants for all of them.
const CACHESTAT: core::ffi::c_long = 451;

/// Bytes in a page of the page cache.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes a number and returns one that the C library remembers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// `int cachestat(unsigned fd, struct cachestat_range *, struct cachestat *, unsigned flags)`:
/// page counts of the bytes `offset .. offset + length`. A length of 0 is an empty range here,
/// not the rest of the file as in the system call. Linux 6.5.
///
/// # Errors
/// `EPERM`: the file is neither ours nor writable; `ENOSYS`: an older kernel; `EOPNOTSUPP`:
/// huge pages. A stacked file system answers, but about an inode that caches nothing.
pub fn cachestat(fd: i32, offset: u64, length: u64) -> Result<Counts, Errno> {
    let mut counts = Counts::default();
    if length == 0 {
        return Ok(counts);
    }
    let range = Range { offset, length };
    // SAFETY: both structures have the kernel's layout (linux/mman.h) and outlive the call.
    unsafe { call!(CACHESTAT, fd, &raw const range, &raw mut counts, 0)? };
    Ok(counts)
}

/// Returns true if mincore(2) is reliable for this file: only for its owner and for users with
/// write access; to others it reports everything as resident (`can_do_mincore` in the kernel).
///
/// A capability that would also do is not looked for: we are then more careful than needed.
#[must_use]
pub fn mincore_is_honest(fd: i32) -> bool {
    let is_own = |status: Status| status.owner == crate::process::user();
    file::status(fd).is_ok_and(is_own) || may_write(fd)
}

fn may_write(fd: i32) -> bool {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: the path is a literal that ends in NUL.
    unsafe { call!(libc::SYS_faccessat2, fd, c"".as_ptr(), libc::W_OK, flags).is_ok() }
}

/// Bytes mapped at once: bounds what a file of any size costs in address space.
const WINDOW: u64 = 64 << 20;

/// mincore(2) over the bytes `offset .. offset + length`: calls `each(offset, resident)` for each page in order.
///
/// Meaningless unless [`mincore_is_honest`]. `offset` is rounded down to a page.
///
/// # Errors
/// As mmap(2): `ENODEV` where a file system cannot map files.
pub fn mincore(
    fd: i32,
    offset: u64,
    length: u64,
    mut each: impl FnMut(u64, bool),
) -> Result<(), Errno> {
    let page = page_size();
    let end = offset.saturating_add(length);
    let mut start = offset - offset % page;
    while start < end {
        // No access rights, so that no thread can fault on it.
        let length = (end - start).min(WINDOW);
        let map = Mapping::of(fd, start, length, libc::PROT_NONE)?;
        let mut at = start;
        residency::each_mapped(map.start, map.length, |resident| {
            each(at, resident);
            at += page;
        })?;
        start += length;
    }
    Ok(())
}

/// Has the byte at `offset` read into the cache and says how long that took, in nanoseconds: a
/// page fault on a mapping that asks for no read-ahead.
///
/// A read(2) of the byte would start an asynchronous read-ahead of megabytes whenever it met the
/// page that carries the kernel's read-ahead mark, even after POSIX_FADV_RANDOM; a fault under
/// MADV_RANDOM never does.
///
/// # Errors
/// As mmap(2) and madvise(2); `EFAULT` beyond the end of the file.
pub fn timed_fault(fd: i32, offset: u64) -> Result<u64, Errno> {
    let page = page_size();
    let map = Mapping::of(fd, offset - offset % page, page, libc::PROT_READ)?;
    // The page is not read, so its contents may change, and MADV_POPULATE_READ reports a fault that
    // cannot be served instead of raising SIGBUS.
    let _ = map.advise(0, map.length, libc::MADV_RANDOM);
    let before = time::now();
    map.advise(0, map.length, libc::MADV_POPULATE_READ)?;
    Ok(time::now().0 - before.0)
}

/// Reads one byte at `offset` (pread(2)) and says how long that took, in nanoseconds. A descriptor
/// on which this was done loses its read-ahead.
///
/// # Errors
/// As pread(2); `EFAULT` beyond the end of the file, as [`timed_fault`].
pub fn timed_read(fd: i32, offset: u64) -> Result<u64, Errno> {
    let mut byte = 0u8;
    // Advice may be refused, which costs a larger read and no more.
    let _ = file::advise(fd, libc::POSIX_FADV_RANDOM);
    let before = time::now();
    // SAFETY: the kernel writes one byte into `byte`, which outlives the call.
    let read = unsafe { call!(libc::SYS_pread64, fd, &raw mut byte, 1, offset)? };
    let took = time::now().0 - before.0;
    if read == 0 { Err(Errno(libc::EFAULT)) } else { Ok(took) }
}
