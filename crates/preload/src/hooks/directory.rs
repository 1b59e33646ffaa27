//! Directories and names.

use core::ffi::{c_char, c_int, c_uint, c_void};

use discnice_sys::file;

use crate::calls;
use crate::real::hooks;

hooks! {
    /// readdir(3).
    fn [readdir readdir64] (directory: *mut c_void) -> *mut c_void, real => {
        // SAFETY: the program's own argument.
        calls::metadata(|| unsafe { real(directory) })
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

    /// fts_read(3), fts_children(3) reads directories inside libc.
    fn [fts_read fts64_read] (tree: *mut c_void) -> *mut c_void, real => {
        // SAFETY: the program's own argument.
        calls::metadata(|| unsafe { real(tree) })
    }

    /// fts_children(3).
    fn [fts_children fts64_children] (tree: *mut c_void, options: c_int) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(tree, options) })
    }

    /// scandir(3).
    fn [scandir scandir64] (path: *const c_char, list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(path, list, filter, compare) })
    }

    /// unlink(2), remove(3).
    fn [unlink remove] (path: *const c_char) -> c_int, real => {
        // SAFETY: the program's own argument.
        calls::delete(libc::AT_FDCWD, path, || unsafe { real(path) })
    }

    /// rmdir(2).
    fn [rmdir] (path: *const c_char) -> c_int, real => {
        // SAFETY: the program's own argument.
        calls::metadata(|| unsafe { real(path) })
    }

    /// unlinkat(2).
    fn [unlinkat] (directory: c_int, path: *const c_char, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::delete(directory, path, || unsafe { real(directory, path, flags) })
    }

    /// rename(2): what had the new name loses it.
    fn [rename] (from: *const c_char, to: *const c_char) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::delete(libc::AT_FDCWD, to, || unsafe { real(from, to) })
    }

    /// renameat(2).
    fn [renameat] (from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::delete(to, new, || unsafe { real(from, old, to, new) })
    }

    /// renameat2(2).
    fn [renameat2] (from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint) -> c_int, real => {
        // SAFETY: the program's own arguments.
        let call = || unsafe { real(from, old, to, new, flags) };
        if flags & libc::RENAME_EXCHANGE != 0 { calls::metadata(call) } else { calls::delete(to, new, call) }
    }

    /// mkdir(2).
    fn [mkdir] (path: *const c_char, mode: c_uint) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(path, mode) })
    }

    /// truncate(2).
    fn [truncate truncate64] (path: *const c_char, length: i64) -> c_int, real => {
        let status = || file::status_at(libc::AT_FDCWD, path).ok();
        // SAFETY: the program's own arguments.
        calls::truncate(length, status, || unsafe { real(path, length) })
    }

    /// ftruncate(2).
    fn [ftruncate ftruncate64] (fd: c_int, length: i64) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::truncate(length, || file::status(fd).ok(), || unsafe { real(fd, length) })
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
