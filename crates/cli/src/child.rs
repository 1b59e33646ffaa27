//! The child of this process that executes the command, where this process stays.

#![allow(unsafe_code, reason = "waitpid and signals")]

use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

/// The child that signals are passed on to, while it has not been waited for.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// How it ended, as waitpid(2) tells it; negative before.
static END: AtomicI32 = AtomicI32::new(-1);

extern "C" fn pass_on(signal: c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: kill(2) may be called in a signal handler; the child is ours and not yet waited for.
        unsafe { libc::kill(child, signal) };
    }
}

/// The child that this program waits for.
pub fn id() -> Option<u32> {
    let child = CHILD.load(Ordering::Relaxed);
    u32::try_from(child).ok().filter(|child| *child > 0)
}

/// Waits until our child has ended; returns how, as waitpid(2) tells it.
///
/// # Errors
/// There is no such child.
pub fn await_end(child: i32) -> io::Result<c_int> {
    let mut status = 0;
    // SAFETY: waitpid writes the status.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    END.store(status, Ordering::Relaxed);
    // Its number may soon be another process's.
    CHILD.store(0, Ordering::Relaxed);
    Ok(status)
}

/// Waits for the command and returns its exit status, as a shell tells it; `None` in a process that
/// is not its parent. Takes no memory.
pub fn status() -> Option<u8> {
    let child = CHILD.load(Ordering::Relaxed);
    let status = if child > 0 { await_end(child).ok()? } else { END.load(Ordering::Relaxed) };
    let signal = (libc::WTERMSIG(status) as u8).saturating_add(128);
    let told = if libc::WIFSIGNALED(status) { signal } else { libc::WEXITSTATUS(status) as u8 };
    (status >= 0).then_some(told)
}

/// Notes a child that was forked, and passes signals on to it; those of its terminal it gets itself.
pub fn begin(child: i32) {
    CHILD.store(child, Ordering::Relaxed);
    // SAFETY: the handlers only call kill(2).
    unsafe {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
            libc::signal(signal, pass_on as *const () as usize);
        }
    }
}
