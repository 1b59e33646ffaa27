//! The clock of regulation: `CLOCK_MONOTONIC`, which stands still while the machine sleeps, so
//! that a suspended laptop does not look like slow progress.

use std::time::Duration;

use discnice_units::{Moment, Nanos};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now.
#[must_use]
pub fn now() -> Moment {
    moment(clock_gettime(ClockId::Monotonic))
}

/// Now, up to a few milliseconds late, for a fifth of the price: for the early return of a
/// testpoint, which millions of calls take.
#[must_use]
pub fn roughly_now() -> Moment {
    moment(clock_gettime(ClockId::MonotonicCoarse))
}

/// Sleeps for `time`, signals or not.
pub fn sleep(time: Nanos) {
    std::thread::sleep(Duration::from_nanos(time.0));
}

fn moment(time: Timespec) -> Moment {
    // The kernel's monotonic clock is never negative and its nanoseconds are below 10^9.
    Moment(time.tv_sec as u64 * Nanos::SECOND.0 + time.tv_nsec as u64)
}
