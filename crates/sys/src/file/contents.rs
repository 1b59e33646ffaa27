//! Small files, read as a whole.

use core::ffi::CStr;

use crate::raw::{Errno, call, pass};

/// Reads a file of /proc, which comes in pieces of a page, into `buffer`, as far as there is room;
/// returns the length.
///
/// # Errors
/// That of open(2) or read(2).
pub fn read_all(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    let mut length = 0;
    let ended = loop {
        let room = &mut buffer[length..];
        // SAFETY: the kernel writes at most the room's length into it.
        match unsafe { call!(libc::SYS_read, fd, room.as_mut_ptr(), room.len()) } {
            Ok(0) => break Ok(length),
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(error) => break Err(error),
        }
    };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    ended
}

/// Reads the beginning of a small file, as of /proc, into `buffer`; returns the length.
///
/// # Errors
/// That of open(2) or read(2).
pub fn read_small(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    // SAFETY: the kernel writes at most the buffer's length into it.
    let length = unsafe { pass!(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    length
}

/// Reads words at `offset` of a file of /proc that consists of them; returns the number of bytes.
///
/// # Errors
/// That of open(2) or pread(2).
pub fn read_small_at(path: &CStr, words: &mut [u64], offset: u64) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    let (start, length) = (words.as_mut_ptr(), size_of_val(words));
    // SAFETY: the kernel writes at most the words' length into them, and any bits are a word.
    let read = unsafe { call!(libc::SYS_pread64, fd, start, length, offset) };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    read
}
