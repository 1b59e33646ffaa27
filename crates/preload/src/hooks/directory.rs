//! Directories, and the room that files take.

use core::ffi::{c_char, c_int, c_void};

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// opendir(3): libc opens the directory itself.
    fn [opendir] (path: *const c_char) -> *mut c_void, real,
        free by operation() => {
        // SAFETY: the program's own argument.
        calls::look(libc::AT_FDCWD, path, || unsafe { real(path) })
    }

    /// readdir(3).
    fn [readdir readdir64] (directory: *mut c_void) -> *mut c_void, real,
        free by list() => {
        // SAFETY: the program's own argument, of which libc returns entries.
        unsafe { calls::list(directory, || real(directory)) }
    }

    /// readdir_r(3).
    fn [readdir_r readdir64_r] (directory: *mut c_void, entry: *mut c_void, result: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(directory, entry, result) })
    }

    /// getdents64(2).
    fn [getdents64] (fd: c_int, buffer: *mut c_void, length: usize) -> isize, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(fd, buffer, length) })
    }

    /// scandir(3).
    fn [scandir scandir64] (path: *const c_char, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(path, list, filter, compare) })
    }

    /// scandirat(3).
    fn [scandirat scandirat64] (at: c_int, path: *const c_char, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(at, path, list, filter, compare) })
    }

    /// ftruncate(2).
    fn [ftruncate ftruncate64] (fd: c_int, length: i64) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::truncate(fd, length, || unsafe { real(fd, length) })
    }

    /// fallocate(2).
    fn [fallocate fallocate64] (fd: c_int, mode: c_int, at: i64, length: i64) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(fd, mode, at, length) })
    }

    /// posix_fallocate(3).
    fn [posix_fallocate posix_fallocate64] (fd: c_int, at: i64, length: i64) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(fd, at, length) })
    }
}
