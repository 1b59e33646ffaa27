//! Mappings. A page fault cannot be seen from here; what it cost is found by the next look, or, where
//! the kernel keeps no account, when the mapping ends.

use core::ffi::{c_int, c_void};

use crate::real::hooks;
use crate::{calls, mappings};

hooks! {
    /// msync(2).
    fn [msync] (start: *mut c_void, length: usize, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(start, length, flags) })
    }

    /// munmap(2): a program that scans a file through a mapping passes here.
    fn [munmap] (start: *mut c_void, length: usize) -> c_int, real => {
        mappings::about_to_end(start as usize);
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(start, length) })
    }

    /// madvise(2): `MADV_WILLNEED` and `MADV_POPULATE_READ` read.
    fn [madvise] (start: *mut c_void, length: usize, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        let call = || unsafe { real(start, length, advice) };
        if matches!(advice, libc::MADV_WILLNEED | libc::MADV_POPULATE_READ) {
            calls::start_io(call)
        } else {
            call()
        }
    }

    /// mmap(2).
    fn [mmap mmap64] (start: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, at: i64) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        let call = || unsafe { real(start, length, protection, flags, fd, at) };
        if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
            return call();
        }
        let made = calls::metadata(call);
        if made != libc::MAP_FAILED {
            mappings::made(fd, made as usize, length);
        }
        made
    }
}
