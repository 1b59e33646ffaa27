//! A program that filters its own system calls, seccomp(2).
//!
//! Such a filter judges our calls too, and may kill the program for one that it would not have
//! made itself. So the filter is asked first, by interpreting it as the kernel will: unless it
//! allows each call of ours, the program goes on unregulated, and so do those that it starts.
//! What we can do without it may also refuse with an error, as old kernels do.

use core::ffi::{c_int, c_long, c_uint, c_void};

use discnice_interpose::filter::{allows, judge_all, spares};

use crate::engine;

/// What we call, besides what the program's own calls are.
const OURS: [c_long; 22] = [
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_geteuid,
    libc::SYS_getpid,
    libc::SYS_kill,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_rt_sigprocmask,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_write,
];

/// What we call and can do without.
const OPTIONAL: [c_long; 7] = [
    libc::SYS_fadvise64,
    libc::SYS_getrusage,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_readahead,
    libc::SYS_sync_file_range,
    // cachestat(2)
    451,
];

/// What we call besides when the class has a threshold of network traffic.
const OF_NETWORK: [c_long; 6] = [
    libc::SYS_epoll_ctl,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_rt_sigaction,
];

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
    let paused = engine::pause();
    match program {
        // It cannot be judged, and nothing of ours is allowed afterwards.
        None => engine::await_outside(paused, true),
        Some(program) if !program.is_null() => engine::await_outside(paused, false),
        // Without a filter it is the question whether there are filters at all.
        Some(_) => {}
    }
    let result = real();
    // With SECCOMP_FILTER_FLAG_NEW_LISTENER success is a descriptor.
    let installed = result.into() >= 0;
    let judged = |calls: &[c_long], accepts: fn(u32) -> bool| {
        // SAFETY: the kernel has just read the program, so it can be read.
        program.is_some_and(|program| unsafe { judge_all(program.cast(), calls, accepts) })
    };
    if installed && !judged(&[libc::SYS_statx], allows) {
        discnice_sys::file::forgo_statx();
    }
    if !installed || judged(&OURS, allows) && judged(&OPTIONAL, spares) {
        let traffic = !installed || judged(&OF_NETWORK, allows);
        engine::resume(paused, traffic);
    }
    result
}
