//! Copies inside the kernel.
//!
//! The offsets that the program points to are moved by the kernel from piece to piece; we never
//! look at them, so a source with its offset there is paced without knowing where it reads.

use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr;

use discnice_sys::{file, memory};

use crate::calls;
use crate::hooks::definition::hooks;

/// Counts above these may exceed the largest offset, which lies between them and twice as much:
/// the kernel refuses such a call as a whole. It adds them to the offset as signed numbers for
/// sendfile(2), as unsigned ones for copy_file_range(2), where programs use the largest signed one.
const SEND_MAX: usize = usize::MAX / 4;
const COPY_MAX: usize = usize::MAX / 2;

/// sendfile(2), of which `piece` makes the call for so many bytes.
pub(super) fn send(
    to: c_int,
    from: c_int,
    at: *mut i64,
    count: usize,
    piece: impl Fn(usize) -> isize,
) -> isize {
    if count > SEND_MAX && !may_be_sent(to, from, at, count) {
        return calls::start_io(|| piece(count));
    }
    calls::copy(from, at.is_null(), to, count.min(calls::MOVED_MAX), piece)
}

/// Returns true if neither end's offset and so many bytes exceed the largest offset.
#[cold]
fn may_be_sent(to: c_int, from: c_int, at: *const i64, count: usize) -> bool {
    let fits = |at: i64| {
        i64::try_from(count).is_ok_and(|count| at >= 0 && at.checked_add(count).is_some())
    };
    // What has no offset, such as a socket, stands at none.
    let position = |fd| file::position(fd).unwrap_or(0) as i64;
    let begin = if at.is_null() {
        position(from)
    } else if memory::can_read(at as usize, size_of::<i64>()) {
        // SAFETY: it can be read, as the kernel just said.
        unsafe { ptr::read_unaligned(at) }
    } else {
        return false;
    };
    fits(begin) && fits(position(to))
}

/// copy_file_range(2), of which `piece` makes the call for so many bytes.
pub(super) fn copy_range(
    (from, at): (c_int, *mut i64),
    to: c_int,
    count: usize,
    piece: impl Fn(usize) -> isize,
) -> isize {
    if count > COPY_MAX {
        return calls::start_io(|| piece(count));
    }
    calls::copy(from, at.is_null(), to, count.min(calls::MOVED_MAX), piece)
}

/// ioctl(2), of which `real` makes the call: of its requests, those matter that share parts of files.
#[inline(never)]
pub(super) fn control(fd: c_int, request: c_ulong, real: &dyn Fn() -> c_int) -> c_int {
    match request {
        // The kernel reads both parts and compares them.
        calls::FIDEDUPERANGE => calls::start_io_on(fd, real),
        libc::FICLONE | libc::FICLONERANGE => calls::metadata(real),
        _ => real(),
    }
}

hooks! {
    /// ioctl(2).
    fn [ioctl] (fd: c_int, request: c_ulong, argument: usize) -> c_int, real,
        free by request(request) => {
        // SAFETY: the program's own arguments.
        control(fd, request, &|| unsafe { real(fd, request, argument) })
    }

    /// sendfile(2).
    fn [sendfile sendfile64] (to: c_int, from: c_int, at: *mut i64, count: usize) -> isize, real => {
        // SAFETY: the program's own arguments.
        send(to, from, at, count, |length| unsafe { real(to, from, at, length) })
    }

    /// copy_file_range(2).
    fn [copy_file_range] (from: c_int, from_at: *mut i64, to: c_int, to_at: *mut i64, count: usize, flags: c_uint) -> isize, real => {
        // SAFETY: the program's own arguments.
        let piece = |length| unsafe { real(from, from_at, to, to_at, length, flags) };
        copy_range((from, from_at), to, count, piece)
    }

    /// splice(2): one end is a pipe, and its buffer bounds the call.
    fn [splice] (from: c_int, from_at: *mut i64, to: c_int, to_at: *mut i64, count: usize, flags: c_uint) -> isize, real => {
        // SAFETY: the program's own arguments.
        let piece = |length, flags| unsafe { real(from, from_at, to, to_at, length, flags) };
        calls::splice(from, to, count, flags, piece)
    }

    /// aio_read(3), aio_write(3): a thread of libc's does the I/O, and the process's account
    /// shows it.
    fn [aio_read aio_read64 aio_write aio_write64] (request: *mut c_void) -> c_int, real => {
        // SAFETY: libc looks at the same place first: `aio_fildes` begins struct aiocb.
        let fd = unsafe { request.cast::<c_int>().read_unaligned() };
        // SAFETY: the program's own argument.
        calls::start_io_on(fd, || unsafe { real(request) })
    }

    /// lio_listio(3).
    fn [lio_listio lio_listio64] (mode: c_int, list: *const c_void, count: c_int, event: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::start_io(|| unsafe { real(mode, list, count, event) })
    }
}
