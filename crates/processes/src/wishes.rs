//! Signals by which people want a process to end, or to stop: they wait while it stands, as its handlers do.

use discnice_sys::procfs;

/// Signals that want it to end, as the kernel's masks have them.
pub const ENDS: u64 =
    bit(libc::SIGINT) | bit(libc::SIGQUIT) | bit(libc::SIGTERM) | bit(libc::SIGHUP);
/// Those, and the one that wants it to stop.
pub const ENDS_AND_STOPS: u64 = ENDS | bit(libc::SIGTSTP);

/// Returns a signal's bit in a mask of the kernel's.
#[must_use]
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns true if one of these signals is pending for a process.
#[must_use]
pub fn awaits(process: u32, wishes: u64) -> bool {
    procfs::pending_signals(process) & wishes != 0
}
