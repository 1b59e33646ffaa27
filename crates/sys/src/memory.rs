//! Private memory without an allocator.

use core::ffi::c_void;
use core::ptr::NonNull;

use crate::raw::{Errno, call};
use crate::valgrind;

/// The page size that the kernel's system-call interface rounds to on the machines we support.
pub const PAGE: usize = 4096;

/// Fresh zeroed private memory of `length` bytes, rounded up to pages; never freed by itself.
/// mmap(2).
///
/// # Errors
/// No memory.
pub fn allocate(length: usize) -> Result<NonNull<u8>, Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing uses.
    let address = unsafe { call!(libc::SYS_mmap, 0, length, protection, flags, -1isize, 0)? };
    let start = NonNull::new(address as *mut u8).ok_or(Errno(libc::ENOMEM))?;
    valgrind::leave_unchecked(start, length);
    Ok(start)
}

/// Gives memory from [`allocate`] back. munmap(2).
///
/// # Safety
/// `start` and `length` are those of one allocation to which no reference is left.
pub unsafe fn free(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller vouches that the memory is not in use. Failure only keeps it.
    let _ = unsafe { call!(libc::SYS_munmap, start.as_ptr(), length) };
}

/// Asks the kernel to hand a forked child zeroes instead of a copy of these pages.
/// madvise(2), `MADV_WIPEONFORK`, Linux 4.14.
///
/// # Errors
/// `EINVAL` on an older kernel.
///
/// # Safety
/// The pages must hold only data for which all zeroes is a valid value, and be private.
pub unsafe fn wipe_on_fork(start: NonNull<u8>, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller vouches for what lies in the pages.
    unsafe { call!(libc::SYS_madvise, start.as_ptr(), length, libc::MADV_WIPEONFORK) }.map(drop)
}

/// Advice about a range that changes no data: `MADV_NORMAL`, `MADV_RANDOM`, `MADV_SEQUENTIAL`. madvise(2).
///
/// # Errors
/// `EINVAL` or `ENOMEM` where nothing is mapped any more.
pub fn advise(start: *mut c_void, length: usize, advice: i32) -> Result<(), Errno> {
    if !matches!(advice, libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: these only change how the kernel reads ahead, whatever is mapped there.
    unsafe { call!(libc::SYS_madvise, start, length, advice) }.map(drop)
}

/// Changes the protection of whole pages. mprotect(2).
///
/// # Errors
/// The kernel's reason, for example a security module's `EACCES`.
///
/// # Safety
/// No code may depend on a protection that is taken away.
pub unsafe fn protect(start: usize, length: usize, writable: bool) -> Result<(), Errno> {
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: the caller vouches for the range.
    unsafe { call!(libc::SYS_mprotect, start, length, protection) }.map(drop)
}

/// Asks about `length` bytes from `start` on, eight of each page.
fn each_page(start: usize, length: usize, mut ask: impl FnMut(usize) -> bool) -> bool {
    let Some(last) = start.checked_add(length.saturating_sub(1)) else { return false };
    let (mut at, last) = (start & !7, last & !7);
    if at == 0 {
        // The kernel would take it for no address, and look at nothing.
        return false;
    }
    while at < last {
        if !ask(at) {
            return false;
        }
        at = (at & !(PAGE - 1)).saturating_add(PAGE);
    }
    ask(last)
}

/// Returns true if memory can be read, by one system call for each page: rt_sigprocmask(2) reads
/// the new mask, and only then refuses a `how` that does not exist.
#[must_use]
pub fn can_read(start: usize, length: usize) -> bool {
    let (how, size) = (usize::MAX, size_of::<u64>());
    each_page(start, length, |at| {
        // SAFETY: the kernel checks the address, and the call changes nothing because it fails.
        let asked = unsafe { call!(libc::SYS_rt_sigprocmask, how, at, 0, size) };
        asked != Err(Errno(libc::EFAULT))
    })
}

/// Returns the word at an address, if it can be read.
#[must_use]
pub fn word(address: usize) -> Option<u64> {
    // SAFETY: the kernel has just read it.
    can_read(address, size_of::<u64>()).then(|| unsafe { (address as *const u64).read_unaligned() })
}

/// Returns true if memory that the caller is about to overwrite can be written. Its contents are
/// lost: rt_sigprocmask(2) writes the old mask.
#[must_use]
pub fn can_write(start: usize, length: usize) -> bool {
    let size = size_of::<u64>();
    each_page(start, length, |at| {
        // SAFETY: the kernel checks the address; the caller is about to write there anyway.
        unsafe { call!(libc::SYS_rt_sigprocmask, 0, 0, at, size) }.is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_and_written_is_known() {
        static WORD: u64 = 0x0123_4567_89ab_cdef;
        let (mut own, constant) = ([0u8; 16], c"constant");
        assert!(can_read(own.as_ptr() as usize, 16) && can_write(own.as_mut_ptr() as usize, 16));
        let constant = constant.as_ptr() as usize;
        assert!(can_read(constant, 9) && !can_write(constant, 9));
        assert_eq!((word((&raw const WORD) as usize), word(8)), (Some(WORD), None));
        // Below eight the kernel takes an address, without its lowest bits, for none.
        for nowhere in [0, 1, 7, 8, 4095, usize::MAX] {
            assert!(!can_read(nowhere, 1) && !can_write(nowhere, 1), "{nowhere}");
        }
    }
}
