//! Calls after which descriptors mean nothing, or the process ends.

use core::ffi::{c_int, c_uint, c_void};

use crate::hooks::definition::hooks;
use crate::real::descriptor;
use crate::{calls, files, lifecycle, stdio};

hooks! {
    /// close(2).
    fn [close] (fd: c_int) -> c_int, real,
        free by close(fd) => {
        // SAFETY: the program's own argument.
        calls::close(fd, || unsafe { real(fd) })
    }

    /// fclose(3): libc writes what is buffered, and closes the descriptor itself.
    fn [fclose] (stream: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own argument.
        let call = || unsafe { real(stream) };
        // SAFETY: the program's own argument, still open.
        let (fd, settles) = unsafe { (descriptor(stream), stdio::settles(stream)) };
        if settles { calls::close_settled(call) } else { calls::close(fd, call) }
    }

    /// close_range(2).
    fn [close_range] (first: c_uint, last: c_uint, flags: c_int) -> c_int, real => {
        files::will_close_range(first, last, flags);
        // SAFETY: the program's own arguments.
        unsafe { real(first, last, flags) }
    }

    /// closefrom(3).
    fn [closefrom] (first: c_int), real => {
        files::will_close_range(first.max(0) as u32, u32::MAX, 0);
        // SAFETY: the program's own argument.
        unsafe { real(first) }
    }

    /// _exit(2): no destructor runs.
    fn [_Exit _exit] (status: c_int), real => {
        lifecycle::leave();
        // SAFETY: the program's own argument.
        unsafe { real(status) }
    }
}
