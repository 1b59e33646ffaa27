//! write(2) and its relatives.

use core::ffi::{c_int, c_void};

use discnice_regulator::Flow;

use crate::calls::{self, VECTOR};
use crate::hooks::definition::hooks;
use crate::hooks::read::{NOWAIT, offset};
use crate::net::vector;

/// pwritev2(2), which `call` makes: of so many bytes at an offset.
pub(super) fn write_with_flags(
    fd: c_int,
    (count, at): (usize, Option<u64>),
    flags: c_int,
    call: impl Fn() -> isize + Copy,
) -> isize {
    if flags & NOWAIT != 0 {
        return calls::at_once(fd, Flow::Up, at, call);
    }
    write_whole(fd, count, at, &call)
}

/// A call that `real` makes as a whole and that writes about `count` bytes. Hooks share it, so that each costs little.
#[inline(never)]
pub(super) fn write_whole(
    fd: c_int,
    count: usize,
    at: Option<u64>,
    real: &dyn Fn() -> isize,
) -> isize {
    calls::write(fd, count, at, true, move |_, _| real())
}

hooks! {
    /// write(2).
    fn [write] (fd: c_int, buffer: *const c_void, count: usize) -> isize, real,
        free by write(fd, count) => {
        if calls::is_beyond_memory(buffer, count) {
            // SAFETY: the program's own arguments.
            return calls::start_io(|| unsafe { real(fd, buffer, count) });
        }
        calls::write(fd, count.min(calls::MOVED_MAX), None, false, move |done, length| {
            // SAFETY: the program's own arguments, or a part of its buffer.
            unsafe { real(fd, buffer.wrapping_byte_add(done), length) }
        })
    }

    /// pwrite(2).
    fn [pwrite pwrite64] (fd: c_int, buffer: *const c_void, count: usize, at: i64) -> isize, real,
        free by write(fd, count) => {
        let beyond_files = at.checked_add_unsigned(count as u64).is_none();
        if beyond_files || calls::is_beyond_memory(buffer, count) {
            // SAFETY: the program's own arguments.
            return calls::start_io(|| unsafe { real(fd, buffer, count, at) });
        }
        calls::write(fd, count.min(calls::MOVED_MAX), offset(at), at < 0, move |done, length| {
            // SAFETY: the program's own arguments, or a part of its buffer.
            unsafe { real(fd, buffer.wrapping_byte_add(done), length, at.wrapping_add(done as i64)) }
        })
    }

    /// writev(2).
    fn [writev] (fd: c_int, vector: *const c_void, buffers: c_int) -> isize, real => {
        // SAFETY: the program's own arguments, or a part of its buffers.
        let call = move |vector, buffers| unsafe { real(fd, vector, buffers) };
        if vector::concerns(fd) {
            return vector::vector(Flow::Up, fd, vector, buffers, call);
        }
        calls::write(fd, VECTOR, None, true, move |_, _| call(vector, buffers))
    }

    /// pwritev(2).
    fn [pwritev pwritev64] (fd: c_int, vector: *const c_void, buffers: c_int, at: i64) -> isize, real => {
        // SAFETY: the program's own arguments.
        write_whole(fd, VECTOR, offset(at), &|| unsafe { real(fd, vector, buffers, at) })
    }

    /// pwritev2(2).
    fn [pwritev2 pwritev64v2] (fd: c_int, vector: *const c_void, buffers: c_int, at: i64, flags: c_int) -> isize, real => {
        // SAFETY: the program's own arguments.
        write_with_flags(fd, (VECTOR, offset(at)), flags, move || unsafe { real(fd, vector, buffers, at, flags) })
    }
}
