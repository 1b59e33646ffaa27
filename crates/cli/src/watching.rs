//! The daemon that watches classes from outside, as this program asks it.

#![allow(unsafe_code, reason = "libc's clock is named")]

use discnice_watcher::daemon::client::{self, Confirmation};

use crate::classes::MappedClass;

/// Has policyd watch the class; starts it if need be.
///
/// # Errors
/// It cannot be started, or does not answer.
pub fn watch(found: &MappedClass, confirmation: Confirmation) -> std::io::Result<()> {
    client::watch(found.block, &std::env::current_exe()?, confirmation)
}

/// From now on this process reads the clock without entering the kernel, where libc does: a watcher
/// asks for it three times whenever it wakes up.
pub fn read_the_clock_by_libc() {
    let clock = libc::clock_gettime as *const ();
    // SAFETY: libc's function takes and returns what the vDSO's does, and is mapped as long as we run.
    unsafe { discnice_sys::time::read_by(clock.cast_mut().cast()) };
}
