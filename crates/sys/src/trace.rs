//! Holding single threads by ptrace(2), as a debugger's "interrupt" does: no signal is sent, the
//! parent sees nothing, calls that wait go on, and a tracer that dies lets go of everything.

use crate::raw::{Errno, call};

/// How a seized thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// By our interrupt.
    Interrupted,
    /// By a stop signal that holds the whole process: job control's business, not ours.
    JobControl,
    /// On its way to receive this signal, which it gets when it is let go with it.
    Signal(i32),
}

/// What has become of a seized thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// The thread has not stopped yet.
    Moving,
    /// The thread is in a ptrace-stop.
    Stopped(Stop),
    /// The thread has ended and waits for [`reap`].
    Ended,
}

const EVENT_STOP: i32 = 128;

/// Becomes the thread's tracer; it goes on. ptrace(2), `PTRACE_SEIZE`.
///
/// # Errors
/// `EPERM` when another tracer has it or the system forbids it; `ESRCH` when it is gone.
pub fn seize(thread: u32) -> Result<(), Errno> {
    // SAFETY: numbers only; no memory of ours is at stake.
    unsafe { call!(libc::SYS_ptrace, libc::PTRACE_SEIZE, thread, 0, 0) }.map(drop)
}

/// Stops a seized thread as soon as it is not in an uninterruptible wait. ptrace(2),
/// `PTRACE_INTERRUPT`.
///
/// # Errors
/// `ESRCH` when it is gone.
pub fn interrupt(thread: u32) -> Result<(), Errno> {
    // SAFETY: as in `seize`.
    unsafe { call!(libc::SYS_ptrace, libc::PTRACE_INTERRUPT, thread, 0, 0) }.map(drop)
}

/// Lets a stopped thread go, with the signal that it was about to receive (zero for none).
/// ptrace(2), `PTRACE_DETACH`.
///
/// # Errors
/// `ESRCH` when it is gone, or has not stopped.
pub fn detach(thread: u32, signal: i32) -> Result<(), Errno> {
    // SAFETY: as in `seize`.
    unsafe { call!(libc::SYS_ptrace, libc::PTRACE_DETACH, thread, 0, signal) }.map(drop)
}

/// `IORING_ENTER_EXT_ARG` (linux/io_uring.h): the call may have a time limit.
const TIMED: u64 = 1 << 3;

/// Returns true if we restart this call ([`resume_call`]) when it returns `EINTR` after a stop
/// though no signal was handled (signal(7)). Calls with a time limit are not restarted, as each
/// time they would wait for all of it again. `argument` returns the call's arguments, counted from
/// zero.
pub fn is_resumed(number: i64, argument: impl Fn(usize) -> Option<u64>) -> bool {
    let is_null = |place| argument(place) == Some(0);
    cfg!(target_arch = "x86_64")
        && match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => argument(3).is_some_and(|limit| (limit as i32) < 0),
            libc::SYS_epoll_pwait => argument(3).is_some_and(|limit| (limit as i32) < 0),
            libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => is_null(3),
            libc::SYS_io_uring_enter => argument(3).is_some_and(|flags| flags & TIMED == 0),
            libc::SYS_io_getevents => is_null(4),
            libc::SYS_rt_sigtimedwait => is_null(2),
            libc::SYS_semop => true,
            _ => false,
        }
}

/// If our interrupt ended a call that [`is_resumed`], the stopped thread makes it again when it is let go, as if
/// nothing had been; if a signal is handled before, the call has been interrupted by that. It has done nothing, or it would
/// have returned how much. The kernel does the same for other calls, which it leaves with `ERESTARTNOHAND`
/// (include/linux/errno.h); it looks at the register after the stop (arch/x86/kernel/signal.c,
/// `arch_do_signal_or_restart`). On other architectures it does so before, and the call returns `EINTR`.
pub fn resume_call(thread: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        /// `rax`, `orig_rax`, and where arguments are passed, in struct user (sys/user.h), in words.
        const RESULT: usize = 10;
        const NUMBER: usize = 15;
        const ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];
        const RESTART: i64 = -514;
        let argument = |place| peek(thread, *ARGUMENTS.get(place)?).map(i64::cast_unsigned).ok();
        if peek(thread, RESULT) == Ok(i64::from(-libc::EINTR))
            && peek(thread, NUMBER).is_ok_and(|number| is_resumed(number, argument))
        {
            let result = RESULT * size_of::<u64>();
            // SAFETY: numbers only; no memory of ours is at stake.
            let _ =
                unsafe { call!(libc::SYS_ptrace, libc::PTRACE_POKEUSER, thread, result, RESTART) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = thread;
}

/// A register of a stopped thread, of struct user, counted in words. ptrace(2), `PTRACE_PEEKUSER`
#[cfg(target_arch = "x86_64")]
fn peek(thread: u32, register: usize) -> Result<i64, Errno> {
    let (mut word, offset) = (0i64, register * size_of::<u64>());
    // SAFETY: the kernel writes one word, the size of `word`.
    unsafe { call!(libc::SYS_ptrace, libc::PTRACE_PEEKUSER, thread, offset, &raw mut word)? };
    Ok(word)
}

/// What has become of a seized thread. waitid(2) with `WNOWAIT`: the kernel forgets a pending signal
/// that a tracer has been told, unless the tracer passes it on; one that is only looked at reaches
/// the thread even if we are killed in between.
///
/// # Errors
/// `ECHILD` when it is not a thread that we trace (any more).
pub fn look(thread: u32) -> Result<Thread, Errno> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    let Some((code, status)) = wait(thread, flags)? else { return Ok(Thread::Moving) };
    if code != libc::CLD_TRAPPED {
        return Ok(Thread::Ended);
    }
    let (signal, event) = (status & 0xff, status >> 8);
    Ok(Thread::Stopped(match (event, signal) {
        (EVENT_STOP, libc::SIGTRAP) => Stop::Interrupted,
        (EVENT_STOP, _) => Stop::JobControl,
        (_, signal) => Stop::Signal(signal),
    }))
}

/// Takes note of a traced thread's end; only then its parent learns of it. True when it has ended, or is none that we trace.
pub fn reap(thread: u32) -> bool {
    // A wait without `WNOWAIT` would also take the report of a stop, whatever it asks for: the kernel reports stops of traced
    // threads regardless of the options.
    match look(thread) {
        Ok(Thread::Ended) => {
            let _ = wait(thread, libc::WEXITED | libc::WNOHANG | libc::__WALL);
            true
        }
        seen => seen == Err(Errno(libc::ECHILD)),
    }
}

/// `si_code` and `si_status` of what waitid(2) reports; `None` when there is nothing.
fn wait(thread: u32, flags: i32) -> Result<Option<(i32, i32)>, Errno> {
    // siginfo_t has 128 bytes: si_signo, si_errno, si_code, padding, si_pid, si_uid, si_status.
    let mut info = [0i32; 32];
    // SAFETY: the kernel writes one siginfo_t of 128 bytes, the size of `info`.
    unsafe { call!(libc::SYS_waitid, libc::P_PID, thread, info.as_mut_ptr(), flags, 0)? };
    Ok((info[0] != 0).then_some((info[2], info[6])))
}
