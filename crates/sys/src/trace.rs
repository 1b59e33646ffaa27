//! Holding single threads by ptrace(2), as a debugger's "interrupt" does: no signal is sent, the
//! parent sees nothing, and a tracer that dies lets go of everything.

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
    /// It has not stopped yet.
    Moving,
    /// It stands.
    Stopped(Stop),
    /// It has ended and waits for [`reap`].
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

/// Takes note of a traced thread's end; only then its parent learns of it. True when it has ended.
pub fn reap(thread: u32) -> bool {
    let ended = wait(thread, libc::WEXITED | libc::WNOHANG | libc::__WALL);
    !matches!(ended, Ok(None))
}

/// `si_code` and `si_status` of what waitid(2) reports; `None` when there is nothing.
fn wait(thread: u32, flags: i32) -> Result<Option<(i32, i32)>, Errno> {
    // siginfo_t has 128 bytes: si_signo, si_errno, si_code, padding, si_pid, si_uid, si_status.
    let mut info = [0i32; 32];
    // SAFETY: the kernel writes one siginfo_t of 128 bytes, the size of `info`.
    unsafe { call!(libc::SYS_waitid, libc::P_PID, thread, info.as_mut_ptr(), flags, 0)? };
    Ok((info[0] != 0).then_some((info[2], info[6])))
}
