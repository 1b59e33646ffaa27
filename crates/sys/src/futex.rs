//! Waiting on a word of shared memory. futex(2).

use core::sync::atomic::AtomicU32;

use discnice_units::{Moment, Nanos};

use crate::raw::{Errno, call};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The deadline has come.
    Due,
    /// The word changed, or another thread woke us.
    Changed,
    /// A signal handler ran.
    Interrupted,
}

/// Sleeps while `*word == expected`, until `deadline` (`CLOCK_MONOTONIC`, absolute).
///
/// The word may lie in memory shared by processes. On a kernel that refuses, which no supported
/// one does, the wait ends at once as [`WaitOutcome::Due`]: rather unregulated than spinning.
pub fn wait(word: &AtomicU32, expected: u32, deadline: Moment) -> WaitOutcome {
    let spec = [(deadline.0 / Nanos::SECOND.0) as i64, (deadline.0 % Nanos::SECOND.0) as i64];
    // SAFETY: the kernel reads the word and the timespec, which outlive the call.
    let ended = unsafe {
        call!(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            expected,
            &raw const spec,
            0,
            libc::FUTEX_BITSET_MATCH_ANY
        )
    };
    match ended {
        Err(Errno(libc::EAGAIN)) | Ok(_) => WaitOutcome::Changed,
        Err(Errno::INTR) => WaitOutcome::Interrupted,
        Err(_) => WaitOutcome::Due,
    }
}

/// Wakes all threads that wait on `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel only uses the word's address. Failure means that no thread waited.
    let _ = unsafe { call!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
