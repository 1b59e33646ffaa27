//! Mappings. A page fault cannot be seen from here; what it cost is found by the next look, or, where
//! the kernel keeps no account, when the mapping ends.
//! `faults` keeps faults small under low limits.

use core::ffi::{c_int, c_void};

use crate::hooks::definition::hooks;
use crate::{calls, faults, mappings};

hooks! {
    /// msync(2).
    fn [msync] (start: *mut c_void, length: usize, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        calls::metadata(|| unsafe { real(start, length, flags) })
    }

    /// munmap(2): a program that scans a file through a mapping passes here.
    fn [munmap] (start: *mut c_void, length: usize) -> c_int, real => {
        // SAFETY: the program's own arguments.
        unmap(start, length, &|| unsafe { real(start, length) })
    }

    /// madvise(2): `MADV_WILLNEED`, `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE` read.
    fn [madvise] (start: *mut c_void, length: usize, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        advised(start, length, advice, &|| unsafe { real(start, length, advice) })
    }

    /// posix_madvise(3); its advice has the numbers of madvise(2).
    fn [posix_madvise] (start: *mut c_void, length: usize, advice: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        advised(start, length, advice, &|| unsafe { real(start, length, advice) })
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
        map(start, length, [protection, flags, fd], at, &call)
    }
}

/// mmap(2), of which `real` makes the call; what makes a mapping is its protection, flags and descriptor.
#[inline(never)]
pub(super) fn map(
    start: *mut c_void,
    length: usize,
    [protection, flags, fd]: [c_int; 3],
    at: i64,
    real: &dyn Fn() -> *mut c_void,
) -> *mut c_void {
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
        if flags & libc::MAP_FIXED != 0 {
            faults::forget(start, length);
        }
        calls::pay_for_faults();
        return real();
    }
    faults::before_map(start, length, protection, flags, fd, at);
    let result = calls::metadata(real);
    if result != libc::MAP_FAILED {
        faults::mapped(result, length, fd);
        mappings::made(fd, result as usize, length, at.max(0) as u64);
    }
    result
}

/// munmap(2), of which `real` makes the call.
#[inline(never)]
pub(super) fn unmap(start: *mut c_void, length: usize, real: &dyn Fn() -> c_int) -> c_int {
    mappings::about_to_end(start as usize);
    // Before the call: afterwards another thread may have a mapping there.
    faults::forget(start, length);
    faults::check();
    calls::metadata(real)
}

/// The program advises the kernel about a mapping.
#[inline(never)]
pub(super) fn advised(
    start: *mut c_void,
    length: usize,
    advice: c_int,
    real: &dyn Fn() -> c_int,
) -> c_int {
    match advice {
        libc::MADV_WILLNEED | libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => {
            calls::start_io(real)
        }
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
