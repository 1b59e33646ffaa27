//! How long a program wants to wait, in the forms that the calls have; `None` is for ever.

#![allow(unsafe_code, reason = "a timeout lies in the memory of the program")]

use core::ffi::c_int;
use core::ptr;

use discnice_sys::memory;
use discnice_units::Nanos;

/// Milliseconds: negative for ever.
pub fn from_millis(timeout: c_int) -> Option<Nanos> {
    u64::try_from(timeout).ok().map(Nanos::from_millis)
}

/// Converts back to milliseconds, rounded up, so that a turn has come when the wait ends.
pub fn to_millis(timeout: Option<Nanos>) -> c_int {
    timeout.map_or(-1, |time| c_int::try_from(time.0.div_ceil(1_000_000)).unwrap_or(c_int::MAX))
}

/// A timeout that lies in the program's memory.
#[derive(Debug, Clone, Copy)]
pub enum Claim {
    /// What it says.
    Valid(Option<Nanos>),
    /// The kernel will say what is wrong with it.
    Refused,
}

/// `struct timespec`, or `struct timeval` if a second has a million `parts`.
#[allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "it is read only where the kernel says that it can be"
)]
pub fn claimed(timeout: *const [i64; 2], parts: u64) -> Claim {
    if timeout.is_null() {
        return Claim::Valid(None);
    }
    if !memory::can_read(timeout as usize, size_of::<[i64; 2]>()) {
        return Claim::Refused;
    }
    // SAFETY: it can be read, as the kernel just said.
    let [seconds, rest] = unsafe { ptr::read_unaligned(timeout) };
    let (Ok(seconds), Ok(rest)) = (u64::try_from(seconds), u64::try_from(rest)) else {
        return Claim::Refused;
    };
    let nanos = rest.saturating_mul(Nanos::SECOND.0 / parts);
    Claim::Valid(Some(Nanos(seconds.saturating_mul(Nanos::SECOND.0).saturating_add(nanos))))
}

/// `struct timespec`, or `struct timeval`, of a time.
pub const fn to_pair(time: Nanos, parts: u64) -> [i64; 2] {
    let (second, part) = (Nanos::SECOND.0, Nanos::SECOND.0 / parts);
    // Rounded up, so that a turn has come when the wait ends.
    let time = time.0.saturating_add(part - 1);
    [(time / second) as i64, (time % second / part) as i64]
}
