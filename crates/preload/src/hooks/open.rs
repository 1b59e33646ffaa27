//! Calls that return a new descriptor, or a stream with one.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::hooks::definition::hooks;
use crate::real::descriptor;
use crate::{calls, files};

/// The descriptor of a stream that was just opened means something new.
fn opened(stream: *mut c_void) -> *mut c_void {
    if !stream.is_null() {
        // SAFETY: libc just opened it.
        let fd = unsafe { descriptor(stream) };
        files::forget(fd);
        calls::opened_to_read(fd);
    }
    stream
}

hooks! {
    /// open(2).
    fn [open open64] (path: *const c_char, flags: c_int, mode: c_uint) -> c_int, real,
        free by open(flags), then files::opened => {
        // SAFETY: the program's own arguments.
        calls::open_named(libc::AT_FDCWD, path, flags, || unsafe { real(path, flags, mode) })
    }

    /// openat(2).
    fn [openat openat64] (directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int, real,
        free by open(flags), then files::opened => {
        // SAFETY: the program's own arguments.
        calls::open_named(directory, path, flags, || unsafe { real(directory, path, flags, mode) })
    }

    /// open(2) as compiled with `_FORTIFY_SOURCE`.
    fn [__open_2 __open64_2] (path: *const c_char, flags: c_int) -> c_int, real,
        free by open(flags), then files::opened => {
        // SAFETY: the program's own arguments.
        calls::open_named(libc::AT_FDCWD, path, flags, || unsafe { real(path, flags) })
    }

    /// openat(2) as compiled with `_FORTIFY_SOURCE`.
    fn [__openat_2 __openat64_2] (directory: c_int, path: *const c_char, flags: c_int) -> c_int, real,
        free by open(flags), then files::opened => {
        // SAFETY: the program's own arguments.
        calls::open_named(directory, path, flags, || unsafe { real(directory, path, flags) })
    }

    /// creat(2).
    fn [creat creat64] (path: *const c_char, mode: c_uint) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::open_named(libc::AT_FDCWD, path, libc::O_TRUNC, || unsafe { real(path, mode) })
    }

    /// mkstemp(3).
    fn [mkstemp mkstemp64] (template: *mut c_char) -> c_int, real => {
        // SAFETY: the program's own argument.
        calls::open(|| unsafe { real(template) })
    }

    /// mkostemp(3), mkstemps(3).
    fn [mkostemp mkostemp64 mkstemps mkstemps64] (template: *mut c_char, number: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::open(|| unsafe { real(template, number) })
    }

    /// mkostemps(3).
    fn [mkostemps mkostemps64] (template: *mut c_char, suffix: c_int, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::open(|| unsafe { real(template, suffix, flags) })
    }

    /// dup(2).
    fn [dup] (fd: c_int) -> c_int, real => {
        // SAFETY: the program's own argument.
        let new = unsafe { real(fd) };
        files::forget(new);
        new
    }

    /// dup2(2).
    fn [dup2] (fd: c_int, new: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        let result = unsafe { real(fd, new) };
        if fd != new {
            files::forget(result);
        }
        result
    }

    /// dup3(2).
    fn [dup3] (fd: c_int, new: c_int, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        let result = unsafe { real(fd, new, flags) };
        files::forget(result);
        result
    }

    /// fcntl(2): of its commands, those that duplicate matter.
    fn [fcntl fcntl64] (fd: c_int, command: c_int, argument: usize) -> c_int, real,
        free by control(command) => {
        // SAFETY: the program's own arguments.
        let result = unsafe { real(fd, command, argument) };
        match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => files::forget(result),
            libc::F_SETFL => files::get(fd).into_iter().for_each(discnice_regulator::File::forget_write_mode),
            _ => {}
        }
        result
    }

    /// fopen(3).
    fn [fopen fopen64] (path: *const c_char, mode: *const c_char) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        opened(calls::operation(|| unsafe { real(path, mode) }))
    }

    /// freopen(3).
    fn [freopen freopen64] (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        opened(calls::operation(|| unsafe { real(path, mode, stream) }))
    }

    /// tmpfile(3).
    fn [tmpfile tmpfile64] () -> *mut c_void, real => {
        // SAFETY: no arguments.
        opened(calls::operation(|| unsafe { real() }))
    }
}
