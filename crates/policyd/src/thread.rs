//! Threads beside policyd's own, which alone is to be interrupted by signals.

#![allow(unsafe_code, reason = "the signal mask of a thread")]

use std::io;
use std::thread::{Builder, JoinHandle};

/// Longest stack of such a thread: it decrypts, and reads the configuration.
const STACK: usize = 1 << 20;

/// Starts a thread that no signal is delivered to.
pub(crate) fn start(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // SAFETY: both sets are written before they are read, and the mask is this thread's.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        // A thread inherits the mask, so no signal can come before it sets its own.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}
