//! A program that filters its own system calls, seccomp(2).
//!
//! Such a filter judges our calls too, and may kill the program for one that it would not have
//! made itself. So the filter is asked first, by interpreting it as the kernel will: unless it
//! allows each call of ours, the program goes on unregulated, and so do those that it starts.
//! What we can do without it may also refuse with an error, as old kernels do. Which calls are ours is listed where they are made
//! ([`discnice_sys::list_call`]).

use core::ffi::{c_int, c_uint, c_void};
use core::slice;

use discnice_interpose::filter::{allows, judge_all, spares};
use discnice_interpose::needs::Need;

use crate::lifecycle;

unsafe extern "C" {
    // The linker defines these around every section with a name that is a C identifier.
    #[link_name = "__start_discnice_calls"]
    static FIRST: u16;
    #[link_name = "__stop_discnice_calls"]
    static END: u16;
}

/// Sends the calls of all code but a range to the program itself, ours among them (linux/prctl.h, Linux 5.11).
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;

/// Calls `real`, which is prctl(2): if it confines the program, mind that.
pub fn by_prctl<T: Copy + Into<i64>>(
    option: c_int,
    mode: usize,
    program: usize,
    real: impl FnOnce() -> T,
) -> T {
    if option == PR_SET_SYSCALL_USER_DISPATCH && mode != 0 {
        return confine(None, real);
    }
    if option != libc::PR_SET_SECCOMP {
        return real();
    }
    let filter = mode == libc::SECCOMP_MODE_FILTER as usize;
    confine(filter.then_some(program as *const c_void), real)
}

/// Calls `real`, which is seccomp(2).
pub fn by_seccomp<T: Copy + Into<i64>>(
    operation: c_uint,
    program: usize,
    real: impl FnOnce() -> T,
) -> T {
    match operation {
        libc::SECCOMP_SET_MODE_STRICT => confine(None, real),
        libc::SECCOMP_SET_MODE_FILTER => confine(Some(program as *const c_void), real),
        _ => real(),
    }
}

/// Installs a filter, or the strict mode, which allows nothing of ours.
fn confine<T: Copy + Into<i64>>(program: Option<*const c_void>, real: impl FnOnce() -> T) -> T {
    let paused = lifecycle::pause();
    match program {
        // It cannot be judged, and nothing of ours is allowed afterwards.
        None => lifecycle::await_outside(paused, true),
        Some(program) if !program.is_null() => lifecycle::await_outside(paused, false),
        // Without a filter it is the question whether there are filters at all.
        Some(_) => {}
    }
    let result = real();
    // With SECCOMP_FILTER_FLAG_NEW_LISTENER success is a descriptor.
    let installed = result.into() >= 0;
    let judged = |need: Need, accepts: fn(u32) -> bool| {
        // SAFETY: the kernel has just read the program, so it can be read.
        program.is_some_and(|program| unsafe { judge_all(program.cast(), made(), need, accepts) })
    };
    if installed && !judged(Need::Replaceable, allows) {
        discnice_sys::file::forgo_statx();
    }
    // A program that it starts is below the filter, too, and has not seen it.
    let is_spared = || judged(Need::IfPossible, spares) && judged(Need::Replaceable, spares);
    if !installed || judged(Need::Always, allows) && is_spared() {
        let traffic = !installed || judged(Need::ForTraffic, allows);
        lifecycle::resume(paused, traffic);
    }
    result
}

/// What we call: a word for each place in the library that makes a call ([`discnice_sys::list_call`]).
fn made() -> &'static [u16] {
    // `calls::size_is_limited` makes it by itself.
    // SAFETY: nothing but an entry in a table.
    unsafe { discnice_sys::list_call!(libc::SYS_prlimit64) };
    let (first, end) = (&raw const FIRST, &raw const END);
    // SAFETY: the section is an array of words.
    unsafe { slice::from_raw_parts(first, end.offset_from_unsigned(first)) }
}
