//! The system calls of this crate, and the only unsafe code in it.
//!
//! # Safety
//! Every block passes the kernel either plain numbers or a pointer to a local variable that
//! outlives the call; the only mapping is made and removed in [`mincore`] and is never read.
#![allow(
    unsafe_code,
    reason = "system calls without a safe wrapper: cachestat, mincore, getrusage"
)]

use core::ffi::c_long;
use core::ptr;

use crate::Errno;

/// cachestat(2); the same number on every architecture.
const SYS_CACHESTAT: c_long = 451;

/// What cachestat(2) counts, in pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pages in the cache, including those whose read is still under way.
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

/// The error number of this thread's last failed call.
fn errno() -> Errno {
    // SAFETY: glibc and musl return a pointer to this thread's own int, valid for its lifetime.
    Errno(unsafe { *libc::__errno_location() })
}

/// Bytes in a page of the page cache.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes a number and returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// The size of a regular file in bytes.
///
/// # Errors
/// As fstat(2).
pub fn file_size(fd: i32) -> Result<u64, Errno> {
    status(fd).map(|status| u64::try_from(status.st_size).unwrap_or(0))
}

fn status(fd: i32) -> Result<libc::stat, Errno> {
    // SAFETY: stat is plain old data, for which all bits zero is a value.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a local variable that outlives the call.
    match unsafe { libc::fstat(fd, &raw mut status) } {
        0 => Ok(status),
        _ => Err(errno()),
    }
}

/// `int cachestat(unsigned fd, struct cachestat_range *, struct cachestat *, unsigned flags)`:
/// page counts of the bytes `offset .. offset + length`. A length of 0 is an empty range here,
/// not the rest of the file as in the system call.
///
/// # Errors
/// `EPERM`: the file is neither ours nor writable; `ENOSYS`: Linux before 6.5; `EOPNOTSUPP`:
/// huge pages. A stacked file system answers, but about an inode that caches nothing.
pub fn cachestat(fd: i32, offset: u64, length: u64) -> Result<Counts, Errno> {
    let mut counts = Counts::default();
    if length == 0 {
        return Ok(counts);
    }
    let range = Range { offset, length };
    // SAFETY: both structures have the kernel's layout (linux/mman.h) and outlive the call.
    let rc =
        unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut counts, 0 as c_long) };
    if rc == 0 { Ok(counts) } else { Err(errno()) }
}

/// Whether mincore(2) tells the truth about this file: only to its owner and to those who may
/// write it; to others it says that everything is resident (`can_do_mincore` in the kernel).
///
/// A capability that would also do is not looked for: we are then more careful than needed.
#[must_use]
pub fn mincore_is_honest(fd: i32) -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    let own = status(fd).is_ok_and(|status| status.st_uid == unsafe { libc::geteuid() });
    own || may_write(fd)
}

fn may_write(fd: i32) -> bool {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: the path is a literal that ends in NUL.
    unsafe { libc::syscall(libc::SYS_faccessat2, fd, c"".as_ptr(), libc::W_OK, flags) == 0 }
}

/// Pages asked about in one call: bounds the stack used to 1 KiB.
const WINDOW: usize = 1024;

/// `int mincore(void *, size_t, unsigned char *)` over the bytes `offset .. offset + length`:
/// calls `each(offset, resident)` for each page in order.
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
        let pages = (end - start).div_ceil(page).min(WINDOW as u64);
        let mut resident = [0u8; WINDOW];
        mincore_window(fd, start, pages * page, &mut resident)?;
        for (index, byte) in (0..pages).zip(resident) {
            each(start + index * page, byte & 1 == 1);
        }
        start += pages * page;
    }
    Ok(())
}

/// One mapping, one question, one unmapping. `length` is at most `WINDOW` pages.
fn mincore_window(
    fd: i32,
    offset: u64,
    length: u64,
    resident: &mut [u8; WINDOW],
) -> Result<(), Errno> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| Errno(libc::EOVERFLOW))?;
    let length = usize::try_from(length).map_err(|_| Errno(libc::EOVERFLOW))?;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing of ours; it has no
    // access rights, so that nobody can fault on it.
    let map = unsafe {
        libc::mmap64(ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_PRIVATE, fd, offset)
    };
    if map == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: `map` is `length` bytes of our own mapping and `resident` has a byte for each of
    // its pages, since `length` is at most WINDOW pages.
    let rc = unsafe { libc::mincore(map, length, resident.as_mut_ptr()) };
    let result = if rc == 0 { Ok(()) } else { Err(errno()) };
    // SAFETY: the mapping made above, of which no pointer is left.
    unsafe { libc::munmap(map, length) };
    result
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
pub(crate) fn timed_fault(fd: i32, offset: u64) -> Result<u64, Errno> {
    let page = page_size();
    let start =
        libc::off64_t::try_from(offset - offset % page).map_err(|_| Errno(libc::EOVERFLOW))?;
    let length = usize::try_from(page).map_err(|_| Errno(libc::EOVERFLOW))?;
    let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing of ours.
    let map = unsafe { libc::mmap64(ptr::null_mut(), length, access, kind, fd, start) };
    if map == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: the page mapped above. Nobody reads it, so that its contents may change, and
    // MADV_POPULATE_READ reports a fault that cannot be served instead of raising SIGBUS.
    let result = unsafe {
        libc::madvise(map, length, libc::MADV_RANDOM);
        let before = now();
        let rc = libc::madvise(map, length, libc::MADV_POPULATE_READ);
        let after = now();
        if rc == 0 { Ok(after - before) } else { Err(errno()) }
    };
    // SAFETY: the mapping made above, of which no pointer is left.
    unsafe { libc::munmap(map, length) };
    result
}

/// Reads one byte at `offset` (pread64) and says how long that took, in nanoseconds.
///
/// # Errors
/// As pread(2); `EFAULT` beyond the end of the file, as [`timed_fault`].
pub(crate) fn timed_read(fd: i32, offset: u64) -> Result<u64, Errno> {
    let mut byte = 0u8;
    let offset = libc::off64_t::try_from(offset).map_err(|_| Errno(libc::EOVERFLOW))?;
    // SAFETY: plain numbers. Advice may be refused, which costs a larger read and no more.
    unsafe { libc::posix_fadvise64(fd, 0, 0, libc::POSIX_FADV_RANDOM) };
    let before = now();
    // SAFETY: the pointer is to one local byte, which outlives the call.
    let rc = unsafe { libc::pread64(fd, (&raw mut byte).cast(), 1, offset) };
    let after = now();
    match rc {
        0 => Err(Errno(libc::EFAULT)),
        1.. => Ok(after - before),
        _ => Err(errno()),
    }
}

/// What getrusage(2) says about this thread.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Bytes that it has made the disk read; stays 0 where the kernel does not say.
    pub disk_read: u64,
    /// Bytes that it has given the disk to write; charged when pages become dirty.
    pub disk_written: u64,
    /// How often it gave up the processor to wait.
    pub waits: libc::c_long,
}

/// The calling thread's account so far.
#[must_use]
pub fn usage() -> Usage {
    // SAFETY: rusage is plain old data, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a local variable that outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let bytes = |blocks: libc::c_long| u64::try_from(blocks).unwrap_or(0) * 512;
    Usage {
        disk_read: bytes(usage.ru_inblock),
        disk_written: bytes(usage.ru_oublock),
        waits: usage.ru_nvcsw,
    }
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable that outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}
