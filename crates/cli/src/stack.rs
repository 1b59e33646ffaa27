//! A stack for this program where the user's limit leaves too little. `ulimit -s 64` is enough for many a command,
//! and is the command's to inherit; parsing a command line takes more. A second thread would have a stack of its own,
//! but fork(2) and exec(2) are for a process of one thread, and a limit of processes may forbid it. So the same
//! thread goes on elsewhere and comes back for the end. The psm crate switches, as swapcontext(3) would; musl has none.

#![allow(unsafe_code, reason = "a stack is mapped, and switched to")]

use std::process::ExitCode;
use std::ptr::{NonNull, null_mut};

/// With so much as its limit the main stack is enough, in a debug build too.
const ENOUGH: u64 = 1 << 20;
/// glibc's dynamic linker puts each name in `LD_PRELOAD` into a buffer of 4 KiB on the stack, below which it loads the
/// library; with 16 KiB one start in five failed.
const PRELOADING: u64 = 32 << 10;
/// What is mapped instead; less where a limit of memory forbids it.
const SIZES: [usize; 3] = [2 << 20, 512 << 10, 192 << 10];
/// At its lower end, which nothing may touch: a page, of whatever size.
const GUARD: usize = 64 << 10;

/// Runs `work` on a stack that is large enough.
#[must_use]
pub fn with_enough(work: fn() -> ExitCode) -> ExitCode {
    match (limit() < ENOUGH).then(map).flatten() {
        Some(stack) => run_on(stack, work),
        None => work(),
    }
}

/// Whether a command that inherits the limit can be started with `LD_PRELOAD`.
#[must_use]
pub fn fits_preloading() -> bool {
    limit() >= PRELOADING
}

/// The limit of the main stack. It grows until that, whatever it has now.
fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes the struct.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if known { limit.rlim_cur } else { libc::RLIM_INFINITY }
}

/// A new stack, never unmapped; `None` if no memory may be had.
fn map() -> Option<NonNull<[u8]>> {
    SIZES.into_iter().find_map(|size| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { libc::mmap(null_mut(), size + GUARD, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the lower part of the mapping, which nothing refers to. Without it an overflow would go on below.
        unsafe { libc::mprotect(start, GUARD, libc::PROT_NONE) };
        let usable = NonNull::new(start.cast::<u8>().wrapping_add(GUARD))?;
        Some(NonNull::slice_from_raw_parts(usable, size))
    })
}

fn run_on(stack: NonNull<[u8]>, work: fn() -> ExitCode) -> ExitCode {
    // SAFETY: the stack was mapped for this, is never unmapped, and is aligned and long as pages are. A panic ends the
    // process and is not to pass from one stack to the other.
    unsafe { psm::on_stack(stack.cast().as_ptr(), stack.len(), work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses more than `ulimit -s 64` allows.
    #[inline(never)]
    fn deep() -> ExitCode {
        let mut room = [0u8; 256 << 10];
        std::hint::black_box(&mut room);
        ExitCode::from(room[7] + 42)
    }

    #[test]
    fn the_other_stack_is_used_and_left_again() {
        let here = 0u8;
        let status = run_on(map().unwrap(), deep);
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(42)));
        assert_eq!(std::hint::black_box(here), 0);
    }
}
