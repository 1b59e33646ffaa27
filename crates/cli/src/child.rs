//! The child of this process that executes the command, where this process stays.

#![allow(unsafe_code, reason = "waitpid and signals")]

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use discnice_processes::wishes;
use discnice_sys::procfs;

/// The child that signals are passed on to, while it has not been waited for.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// How it ended, as waitpid(2) tells it; negative before.
static END: AtomicI32 = AtomicI32::new(-1);

/// The signals that it was sent by way of this process, as a mask: it may have received them by now.
static SENT: AtomicU64 = AtomicU64::new(0);

extern "C" fn pass_on(signal: c_int) {
    SENT.fetch_or(wishes::bit(signal), Ordering::Relaxed);
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: kill(2) may be called in a signal handler; the child is ours and not yet waited for.
        unsafe { libc::kill(child, signal) };
    }
}

/// Notes a signal of the terminal, which sends it to the child itself. What was sent to this process alone is ignored.
extern "C" fn note(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes what it knows of the signal.
    if unsafe { (*info).si_code } == libc::SI_KERNEL {
        SENT.fetch_or(wishes::bit(signal), Ordering::Relaxed);
    }
}

/// Returns which of these signals the child was sent by way of this process, or with it, since they were last asked for,
/// without those that it ignores.
pub fn take_sent(signals: u64) -> u64 {
    let sent = SENT.fetch_and(!signals, Ordering::Relaxed) & signals;
    let ignored = || id().map_or(0, procfs::ignored_signals);
    if sent == 0 { 0 } else { sent & !ignored() }
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

/// Where this process is the first one of a container (pid_namespaces(7)): goes on in a child of it, so that the first one
/// can reap all that is left to it, and ends as this one does. Without memory for that it stays the first. Children must not
/// be ignored (SIGCHLD).
pub fn leave_first_place() {
    if std::process::id() != 1 {
        return;
    }
    // SAFETY: this process has one thread, so the child may do everything.
    let child = unsafe { libc::fork() };
    if child <= 0 {
        return;
    }
    begin(child);
    let mut status = 0;
    // SAFETY: waitpid writes the status.
    while unsafe { libc::waitpid(-1, &raw mut status, 0) } != child {}
    // SAFETY: ends this process without running what the child has run.
    unsafe { libc::_exit(told(status).into()) }
}

/// The exit status of a process that ended so, as a shell tells it.
fn told(status: c_int) -> u8 {
    let signal = (libc::WTERMSIG(status) as u8).saturating_add(128);
    if libc::WIFSIGNALED(status) { signal } else { libc::WEXITSTATUS(status) as u8 }
}

/// Waits for the command and returns its exit status, as a shell tells it; `None` in a process that
/// is not its parent. Takes no memory.
pub fn status() -> Option<u8> {
    let child = CHILD.load(Ordering::Relaxed);
    let status = if child > 0 { await_end(child).ok()? } else { END.load(Ordering::Relaxed) };
    (status >= 0).then(|| told(status))
}

/// Notes a child that was forked, and passes signals on to it; those of its terminal it gets itself.
pub fn begin(child: i32) {
    CHILD.store(child, Ordering::Relaxed);
    // SAFETY: the handlers only call kill(2) and change a number; all-zero is a valid action without a mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
            libc::signal(signal, pass_on as *const () as usize);
        }
    }
}
