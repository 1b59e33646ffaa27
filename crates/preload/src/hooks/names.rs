//! Calls that make, change or remove names.

use core::ffi::{c_char, c_int, c_uint};

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// unlink(2), remove(3).
    fn [unlink remove] (path: *const c_char) -> c_int, real,
        free by delete() => {
        // SAFETY: the program's own argument.
        calls::delete(libc::AT_FDCWD, path, || unsafe { real(path) })
    }

    /// rmdir(2).
    fn [rmdir] (path: *const c_char) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own argument.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path) })
    }

    /// unlinkat(2).
    fn [unlinkat] (directory: c_int, path: *const c_char, flags: c_int) -> c_int, real,
        free by delete() => {
        // SAFETY: the program's own arguments.
        calls::delete(directory, path, || unsafe { real(directory, path, flags) })
    }

    /// rename(2): what had the new name loses it.
    fn [rename] (from: *const c_char, to: *const c_char) -> c_int, real,
        free by delete() => {
        // SAFETY: the program's own arguments.
        calls::delete(libc::AT_FDCWD, to, || unsafe { real(from, to) })
    }

    /// renameat(2).
    fn [renameat] (from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int, real,
        free by delete() => {
        // SAFETY: the program's own arguments.
        calls::delete(to, new, || unsafe { real(from, old, to, new) })
    }

    /// renameat2(2).
    fn [renameat2] (from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint) -> c_int, real,
        free by delete() => {
        // SAFETY: the program's own arguments.
        let call = || unsafe { real(from, old, to, new, flags) };
        if flags & libc::RENAME_EXCHANGE != 0 { calls::change(to, new, call) } else { calls::delete(to, new, call) }
    }

    /// mkdir(2).
    fn [mkdir] (path: *const c_char, mode: c_uint) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, mode) })
    }

    /// truncate(2).
    fn [truncate truncate64] (path: *const c_char, length: i64) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::truncate_named(path, length, || unsafe { real(path, length) })
    }

    /// mkdirat(2).
    fn [mkdirat] (directory: c_int, path: *const c_char, mode: c_uint) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(directory, path, || unsafe { real(directory, path, mode) })
    }

    /// mknod(2).
    fn [mknod] (path: *const c_char, mode: c_uint, device: u64) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, mode, device) })
    }

    /// mknodat(2).
    fn [mknodat] (directory: c_int, path: *const c_char, mode: c_uint, device: u64) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(directory, path, || unsafe { real(directory, path, mode, device) })
    }

    /// mkfifo(3).
    fn [mkfifo] (path: *const c_char, mode: c_uint) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, mode) })
    }

    /// link(2), symlink(2).
    fn [link symlink] (old: *const c_char, new: *const c_char) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, new, || unsafe { real(old, new) })
    }

    /// linkat(2).
    fn [linkat] (from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(to, new, || unsafe { real(from, old, to, new, flags) })
    }

    /// symlinkat(2).
    fn [symlinkat] (old: *const c_char, to: c_int, new: *const c_char) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(to, new, || unsafe { real(old, to, new) })
    }
}
