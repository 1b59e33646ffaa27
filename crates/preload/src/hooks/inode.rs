//! Calls that ask for or change what stands in an inode, by name. The same by descriptor
//! (fstat, fchmod) finds its inode in memory and is free.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// stat(2), lstat(2).
    fn [stat stat64 lstat lstat64] (path: *const c_char, status: *mut c_void) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(libc::AT_FDCWD, path, || unsafe { real(path, status) })
    }

    /// fstatat(2). With an empty path it asks about the descriptor, which only the kernel may look
    /// for: it counts as an operation all the same.
    fn [fstatat fstatat64] (directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(directory, path, || unsafe { real(directory, path, status, flags) })
    }

    /// statx(2).
    fn [statx] (directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(directory, path, || unsafe { real(directory, path, flags, mask, status) })
    }

    /// stat(2), lstat(2) of programs that were linked with glibc 2.32 or older.
    fn [__xstat __xstat64 __lxstat __lxstat64] (version: c_int, path: *const c_char, status: *mut c_void) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(libc::AT_FDCWD, path, || unsafe { real(version, path, status) })
    }

    /// fstatat(2) of such programs.
    fn [__fxstatat __fxstatat64] (version: c_int, directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(directory, path, || unsafe { real(version, directory, path, status, flags) })
    }

    /// access(2), euidaccess(3).
    fn [access euidaccess eaccess] (path: *const c_char, mode: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(libc::AT_FDCWD, path, || unsafe { real(path, mode) })
    }

    /// faccessat(2).
    fn [faccessat] (directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(directory, path, || unsafe { real(directory, path, mode, flags) })
    }

    /// readlink(2).
    fn [readlink] (path: *const c_char, buffer: *mut c_char, length: usize) -> isize, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(libc::AT_FDCWD, path, || unsafe { real(path, buffer, length) })
    }

    /// readlinkat(2).
    fn [readlinkat] (directory: c_int, path: *const c_char, buffer: *mut c_char, length: usize) -> isize, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::look(directory, path, || unsafe { real(directory, path, buffer, length) })
    }

    /// chmod(2), lchmod(3).
    fn [chmod lchmod] (path: *const c_char, mode: c_uint) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, mode) })
    }

    /// fchmodat(2).
    fn [fchmodat] (directory: c_int, path: *const c_char, mode: c_uint, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(directory, path, || unsafe { real(directory, path, mode, flags) })
    }

    /// chown(2), lchown(2).
    fn [chown lchown] (path: *const c_char, owner: c_uint, group: c_uint) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, owner, group) })
    }

    /// fchownat(2).
    fn [fchownat] (directory: c_int, path: *const c_char, owner: c_uint, group: c_uint, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(directory, path, || unsafe { real(directory, path, owner, group, flags) })
    }

    /// utime(2), utimes(2), lutimes(3).
    fn [utime utimes lutimes] (path: *const c_char, times: *const c_void) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, times) })
    }

    /// utimensat(2).
    fn [utimensat] (directory: c_int, path: *const c_char, times: *const c_void, flags: c_int) -> c_int, real,
        free by operation() => {
        // SAFETY: the program's own arguments.
        calls::change(directory, path, || unsafe { real(directory, path, times, flags) })
    }

    /// getxattr(2), lgetxattr(2).
    fn [getxattr lgetxattr] (path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(path, name, value, size) })
    }

    /// listxattr(2), llistxattr(2).
    fn [listxattr llistxattr] (path: *const c_char, list: *mut c_char, size: usize) -> isize, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(path, list, size) })
    }

    /// setxattr(2), lsetxattr(2).
    fn [setxattr lsetxattr] (path: *const c_char, name: *const c_char, value: *const c_void, size: usize, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, name, value, size, flags) })
    }

    /// removexattr(2), lremovexattr(2).
    fn [removexattr lremovexattr] (path: *const c_char, name: *const c_char) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::change(libc::AT_FDCWD, path, || unsafe { real(path, name) })
    }

    /// statfs(2), statvfs(3).
    fn [statfs statfs64 statvfs statvfs64] (path: *const c_char, status: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(path, status) })
    }

    /// realpath(3): libc looks up each part of the path itself.
    fn [realpath] (path: *const c_char, resolved: *mut c_char) -> *mut c_char, real => {
        // SAFETY: the program's own arguments.
        calls::operation(|| unsafe { real(path, resolved) })
    }

    /// canonicalize_file_name(3).
    fn [canonicalize_file_name] (path: *const c_char) -> *mut c_char, real => {
        // SAFETY: the program's own argument.
        calls::operation(|| unsafe { real(path) })
    }
}
