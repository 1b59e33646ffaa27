//! Pages of a file: read ahead, given advice on, written back.

use crate::raw::{Errno, call, pass};

use super::file_system::{FUSE, file_system, is_on_overlay};

/// The descriptor's offset. lseek(2) with `SEEK_CUR`.
///
/// # Errors
/// `ESPIPE` where there is none.
pub fn position(fd: i32) -> Result<u64, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR) }.map(|at| at as u64)
}

/// The open flags (`O_APPEND`, `O_DIRECT`…). fcntl(2) with `F_GETFL`.
///
/// # Errors
/// `EBADF` when the descriptor is closed.
pub fn flags(fd: i32) -> Result<i32, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFL) }.map(|flags| flags as i32)
}

/// Returns true if both descriptors are one open file, as after dup(2); false as well before Linux 6.10. fcntl(2) with
/// `F_DUPFD_QUERY`.
pub fn is_duplicate(fd: i32, other: i32) -> bool {
    const F_DUPFD_QUERY: i32 = 1027;
    // SAFETY: numbers only.
    let answer = unsafe { call!(libc::SYS_fcntl, fd, F_DUPFD_QUERY, other) };
    answer == Ok(1)
}

/// Starts reading a range into the page cache without waiting for it. readahead(2).
///
/// The kernel cuts it at one read-ahead window of the device, so callers ask in small pieces.
///
/// # Errors
/// `EINVAL` where the object has no page cache.
pub fn read_ahead(fd: i32, offset: u64, length: u64) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { pass!(libc::SYS_readahead, fd, offset, length) }.map(drop)
}

/// Waits until the page at `offset` has been read, if it is being read or has not been yet. pread(2)
///
/// # Errors
/// `EBADF` without the right to read; `EINTR`; `EIO`.
pub fn await_read(fd: i32, offset: u64) -> Result<(), Errno> {
    let mut byte = [0u8; 1];
    let buffer = byte.as_mut_ptr();
    // SAFETY: the buffer has the length that is said, and outlives the call.
    unsafe { call!(libc::SYS_pread64, fd, buffer, byte.len(), offset) }.map(drop)
}

/// Advice on the whole file. posix_fadvise(2) with `POSIX_FADV_*`.
///
/// # Errors
/// `ESPIPE` on pipes.
pub fn advise(fd: i32, advice: i32) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fadvise64, fd, 0, 0, advice) }.map(drop)
}

/// Advice on a range. posix_fadvise(2) with `POSIX_FADV_*`.
///
/// # Errors
/// `ESPIPE` on pipes.
pub fn advise_range(fd: i32, offset: u64, length: u64, advice: i32) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fadvise64, fd, offset, length, advice) }.map(drop)
}

/// Starts writing dirty pages of a range without waiting: to the file's end if `length` is 0. sync_file_range(2) with
/// `SYNC_FILE_RANGE_WRITE`; on overlayfs, where that looks at an inode that has no pages, posix_fadvise(2) with
/// `POSIX_FADV_DONTNEED`, which reaches the file below and starts the same there (mm/fadvise.c). What of the range
/// is clean then is dropped from the cache, so there a range without an end is left alone.
///
/// # Errors
/// `ESPIPE` and others where it makes no sense; FUSE succeeds and does nothing.
pub fn start_write_back(fd: i32, offset: u64, length: u64) -> Result<(), Errno> {
    if is_on_overlay(fd) {
        if length == 0 {
            return Ok(());
        }
        return advise_range(fd, offset, length, libc::POSIX_FADV_DONTNEED);
    }
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_sync_file_range, fd, offset, length, libc::SYNC_FILE_RANGE_WRITE) }
        .map(drop)
}

/// Writes a file's dirty pages and waits for them, where [`start_write_back`] does nothing: on
/// FUSE. fdatasync(2)
///
/// # Errors
/// Those of the disk; the kernel reports each only once, so later calls do not see them.
pub fn write_through(fd: i32) -> Result<(), Errno> {
    if file_system(fd) != Some(FUSE) {
        return Ok(());
    }
    // SAFETY: a number only.
    unsafe { call!(libc::SYS_fdatasync, fd) }.map(drop)
}
