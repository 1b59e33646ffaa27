//! Signals that interrupt the receiving thread: the end of the other process of a [`crate::pair`],
//! and a timer. No other thread is interrupted by them: it may be delaying a call for a limit,
//! until a given time.
#![allow(unsafe_code, reason = "signals and timers")]

use std::io;

/// Signals that mean something here.
const HEEDED: [libc::c_int; 2] = [libc::SIGCHLD, libc::SIGALRM];

/// Lets the end of the second process interrupt the receiving thread.
///
/// A signal that comes just before a wait begins does not interrupt it; for that there is
/// [`every_second`].
///
/// # Errors
/// None is known.
pub fn prepare() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, and without SA_RESTART a wait ends with EINTR; children
    // that end are not waited for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_NOCLDWAIT;
        let all: libc::sigset_t = std::mem::zeroed();
        let mut failed = libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        for signal in HEEDED {
            failed |= libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    heed(false);
    Ok(())
}

/// Sets if the calling thread, and those that it starts, are interrupted.
pub fn heed(on: bool) {
    let how = if on { libc::SIG_UNBLOCK } else { libc::SIG_BLOCK };
    // SAFETY: the kernel reads one set of signals, which libc has filled.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        for signal in HEEDED {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

/// Interrupts the receiving thread every second, or stops doing so.
pub fn every_second(on: bool) {
    let time = libc::timeval { tv_sec: on.into(), tv_usec: 0 };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the kernel reads one timer; its signal's handler does nothing.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}
