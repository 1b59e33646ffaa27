//! read(2) and its relatives.

use core::ffi::{c_int, c_void};

use discnice_regulator::Flow;

use crate::calls::{self, VECTOR};
use crate::hooks::definition::hooks;
use crate::net::vector;

/// `RWF_NOWAIT`: the program does not want to wait, so neither do we.
pub const NOWAIT: c_int = 8;

/// An offset that is given; a negative one stands for the file's own.
pub(super) const fn offset(at: i64) -> Option<u64> {
    if at < 0 { None } else { Some(at.cast_unsigned()) }
}

/// preadv2(2), which `call` makes: of so many bytes at an offset.
pub(super) fn read_with_flags(
    fd: c_int,
    (count, at): (usize, Option<u64>),
    flags: c_int,
    call: impl Fn() -> isize + Copy,
) -> isize {
    if flags & NOWAIT != 0 {
        return calls::at_once(fd, Flow::Down, at, call);
    }
    calls::read(fd, count, at, true, move |_, _| call())
}

hooks! {
    /// read(2).
    fn [read] (fd: c_int, buffer: *mut c_void, count: usize) -> isize, real,
        free by transfer(fd, count) => {
        // SAFETY: the program's own arguments.
        calls::read(fd, count, None, false, move |done, length| unsafe {
            real(fd, buffer.wrapping_byte_add(done), length)
        })
    }

    /// pread(2).
    fn [pread pread64] (fd: c_int, buffer: *mut c_void, count: usize, at: i64) -> isize, real,
        free by transfer(fd, count) => {
        // SAFETY: the program's own arguments.
        calls::read(fd, count, offset(at), true, move |_, _| unsafe { real(fd, buffer, count, at) })
    }

    /// readv(2).
    fn [readv] (fd: c_int, vector: *const c_void, buffers: c_int) -> isize, real => {
        // SAFETY: the program's own arguments, or a part of its buffers.
        let call = move |vector, buffers| unsafe { real(fd, vector, buffers) };
        if vector::concerns(fd) {
            return vector::vector(Flow::Down, fd, vector, buffers, call);
        }
        calls::read(fd, VECTOR, None, true, move |_, _| call(vector, buffers))
    }

    /// preadv(2).
    fn [preadv preadv64] (fd: c_int, vector: *const c_void, buffers: c_int, at: i64) -> isize, real => {
        // SAFETY: the program's own arguments.
        calls::read(fd, VECTOR, offset(at), true, move |_, _| unsafe { real(fd, vector, buffers, at) })
    }

    /// preadv2(2).
    fn [preadv2 preadv64v2] (fd: c_int, vector: *const c_void, buffers: c_int, at: i64, flags: c_int) -> isize, real => {
        // SAFETY: the program's own arguments.
        read_with_flags(fd, (VECTOR, offset(at)), flags, move || unsafe { real(fd, vector, buffers, at, flags) })
    }

    /// read(2) as compiled with `_FORTIFY_SOURCE`: the real function checks `size`.
    fn [__read_chk] (fd: c_int, buffer: *mut c_void, count: usize, size: usize) -> isize, real,
        free by transfer(fd, count) => {
        // SAFETY: the program's own arguments.
        calls::read(fd, count, None, count > size, move |done, length| unsafe {
            real(fd, buffer.wrapping_byte_add(done), length, size - done)
        })
    }

    /// pread(2) as compiled with `_FORTIFY_SOURCE`.
    fn [__pread_chk __pread64_chk] (fd: c_int, buffer: *mut c_void, count: usize, at: i64, size: usize) -> isize, real,
        free by transfer(fd, count) => {
        // SAFETY: the program's own arguments.
        calls::read(fd, count, offset(at), true, move |_, _| unsafe { real(fd, buffer, count, at, size) })
    }
}
