//! Calls that wait for what was written: charged when it was dirtied, so they wait for nothing
//! else. They are looked at because they can read (journal, bitmaps).

use core::ffi::{c_int, c_uint};

use crate::calls;
use crate::hooks::definition::hooks;

hooks! {
    /// fsync(2), fdatasync(2).
    fn [fsync fdatasync] (fd: c_int) -> c_int, real => {
        // SAFETY: the program's own argument.
        calls::sync(fd, || unsafe { real(fd) })
    }

    /// syncfs(2).
    fn [syncfs] (fd: c_int) -> c_int, real => {
        // SAFETY: the program's own argument.
        calls::metadata(|| unsafe { real(fd) })
    }

    /// lseek(2).
    fn [lseek lseek64] (fd: c_int, offset: i64, whence: c_int) -> i64, real,
        free by seek(fd) => {
        // SAFETY: the program's own arguments.
        calls::seek(fd, || unsafe { real(fd, offset, whence) })
    }

    /// sync_file_range(2).
    fn [sync_file_range] (fd: c_int, at: i64, length: i64, flags: c_uint) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(fd, at, length, flags) })
    }
}
