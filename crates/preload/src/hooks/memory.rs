//! Mappings. A page fault cannot be seen from here; what it cost is found by the next look, or, where
//! the kernel keeps no account, when the mapping ends.
//! `faults` keeps faults small under low limits.

use core::ffi::{c_int, c_void};

use crate::real::hooks;
use crate::{calls, faults, mappings};

hooks! {
    /// msync(2).
    fn [msync] (start: *mut c_void, length: usize, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(start, length, flags) })
    }

    /// munmap(2): a program that scans a file through a mapping passes here.
    fn [munmap] (start: *mut c_void, length: usize) -> c_int, real => {
        mappings::about_to_end(start as usize);
        // Before the call: afterwards another thread may have a mapping there.
        faults::forget(start, length);
        faults::check();
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(start, length) })
    }

    /// madvise(2): `MADV_WILLNEED` and `MADV_POPULATE_READ` read.
    fn [madvise] (start: *mut c_void, length: usize, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        advised(start, length, advice, || unsafe { real(start, length, advice) })
    }

    /// posix_madvise(3); its advice has the numbers of madvise(2).
    fn [posix_madvise] (start: *mut c_void, length: usize, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        advised(start, length, advice, || unsafe { real(start, length, advice) })
    }

    /// mremap(2), with the five arguments that it can have.
    fn [mremap] (start: *mut c_void, length: usize, new: usize, flags: c_int, to: *mut c_void) -> *mut c_void, real => {
        let ours = faults::forget(start, length);
        if flags & libc::MREMAP_FIXED != 0 {
            faults::forget(to, new);
        }
        // SAFETY: the program's own arguments.
        let result = unsafe { real(start, length, new, flags, to) };
        if result == libc::MAP_FAILED {
            faults::moved(ours, start, length);
        } else {
            faults::moved(ours, result, new);
        }
        result
    }

    /// mmap(2).
    fn [mmap mmap64] (start: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, at: i64) -> *mut c_void, real => {
        // SAFETY: the program's own arguments.
        let call = || unsafe { real(start, length, protection, flags, fd, at) };
        if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
            if flags & libc::MAP_FIXED != 0 {
                faults::forget(start, length);
            }
            calls::pay_for_faults();
            return call();
        }
        faults::before_map(start, length, protection, flags, fd, at);
        let result = calls::metadata(call);
        if result != libc::MAP_FAILED {
            faults::mapped(result, length, fd);
            mappings::made(fd, result as usize, length, at.max(0) as u64);
        }
        result
    }
}

/// The program advises the kernel about a mapping.
fn advised(
    start: *mut c_void,
    length: usize,
    advice: c_int,
    real: impl FnOnce() -> c_int,
) -> c_int {
    match advice {
        libc::MADV_WILLNEED | libc::MADV_POPULATE_READ => calls::start_io(real),
        libc::MADV_RANDOM => {
            faults::forget(start, length);
            mappings::advised(start as usize, true);
            real()
        }
        libc::MADV_NORMAL | libc::MADV_SEQUENTIAL => {
            let result = real();
            if result == 0 {
                let alone = faults::advised(start, length, advice == libc::MADV_SEQUENTIAL);
                mappings::advised(start as usize, alone);
            }
            result
        }
        _ => real(),
    }
}
