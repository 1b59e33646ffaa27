//! The clock of the ledger.

use discnice_units::Nanos;

use crate::raw::call;

/// `CLOCK_MONOTONIC` now: it stands still while the machine is suspended, and no administrator
/// can set it. clock_gettime(2).
#[must_use]
pub fn now() -> Nanos {
    let mut spec = [0i64; 2];
    // SAFETY: the kernel writes one timespec of two 64-bit numbers into `spec`.
    let done = unsafe { call!(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut spec) };
    if done.is_err() {
        return Nanos(0);
    }
    Nanos(spec[0] as u64 * Nanos::SECOND.0 + spec[1] as u64)
}
