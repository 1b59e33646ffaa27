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
    // select(2) alone takes more than a second here.
    if parts == Nanos::SECOND.0 && rest >= parts {
        return Claim::Refused;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: u64 = 1_000_000_000;
    const VAL: u64 = 1_000_000;

    fn wanted(timeout: [i64; 2], parts: u64) -> Option<Option<Nanos>> {
        match claimed(&raw const timeout, parts) {
            Claim::Valid(time) => Some(time),
            Claim::Refused => None,
        }
    }

    #[test]
    fn milliseconds_are_for_ever_where_they_are_negative() {
        assert_eq!(
            (from_millis(-1), from_millis(i32::MIN), from_millis(0)),
            (None, None, Some(Nanos(0)))
        );
        assert_eq!(
            (to_millis(None), to_millis(Some(Nanos(1))), to_millis(Some(Nanos(0)))),
            (-1, 1, 0)
        );
        assert_eq!(to_millis(Some(Nanos(u64::MAX))), c_int::MAX);
        for millis in [0, 1, 1000, c_int::MAX] {
            assert_eq!(to_millis(from_millis(millis)), millis);
        }
    }

    #[test]
    fn a_pair_is_read_where_it_can_be() {
        assert_eq!(wanted([2, 5], SPEC), Some(Some(Nanos(2_000_000_005))));
        assert_eq!(wanted([2, 5], VAL), Some(Some(Nanos(2_000_005_000))));
        assert_eq!(wanted([i64::MAX, 0], SPEC), Some(Some(Nanos(u64::MAX))));
        assert_eq!((wanted([-1, 0], SPEC), wanted([0, -1], VAL)), (None, None));
        assert_eq!(wanted([0, 1_500_000], VAL), Some(Some(Nanos(1_500_000_000))));
        assert_eq!(wanted([0, 1_000_000_000], SPEC), None);
        assert!(matches!(claimed(ptr::null(), SPEC), Claim::Valid(None)));
        assert!(matches!(claimed(ptr::without_provenance(16), SPEC), Claim::Refused));
    }

    #[test]
    fn a_wait_is_never_shorter_than_asked() {
        for time in [0, 1, 999, 1000, 999_999_999, 1_000_000_001, u64::MAX] {
            for parts in [SPEC, VAL] {
                let Some(Some(again)) = wanted(to_pair(Nanos(time), parts), parts) else {
                    panic!("{time}")
                };
                assert!(
                    again.0 >= time && again.0 - time < Nanos::SECOND.0 / parts || time == u64::MAX,
                    "{time} {again:?}"
                );
            }
        }
    }
}
