//! Quantities: bytes, rates, durations and moments.
//!
//! This crate is the only place that parses a quantity that a person typed and the only place
//! that prints one for a person. Everything else carries the newtypes.
//!
//! Conventions, valid in the whole workspace:
//! - sizes and rates typed by people: `B`, `k`/`K`/`KiB`, `M`/`MiB`, `G`/`GiB`, `T`/`TiB` count in
//!   1024s, `kB`, `MB`, `GB`, `TB` in 1000s; a rate may end in `/s`; `unlimited` is a rate;
//! - durations typed by people are systemd's: `90`, `5min`, `1h 30min`;
//! - a moment is one of `CLOCK_MONOTONIC`, which stands still while the machine sleeps;
//! - a name that ends in `_frac` is at most 1.
//!
//! ```
//! use discnice_units::{Bytes, Rate};
//! assert_eq!("5M".parse::<Rate>().unwrap(), Rate::per_second(5 * 1024 * 1024));
//! assert_eq!("1.5 kB".parse::<Bytes>().is_err(), true);
//! assert_eq!(Bytes::new(1536).to_string(), "1.5 KiB");
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod duration;
mod parse;
mod print;

pub use duration::DurationError;
pub use parse::ParseError;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or the most that there can be.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Units (bytes, or operations) per second; [`Rate::UNLIMITED`] is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No limit.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// `units` per second.
    #[must_use]
    pub const fn per_second(units: u64) -> Self {
        Self(units)
    }

    /// Units per second; `u64::MAX` stands for [`Rate::UNLIMITED`].
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns this rate in smaller units, so many to each unit; saturates.
    #[must_use]
    pub const fn times(self, parts: u64) -> Self {
        Self(self.0.saturating_mul(parts))
    }

    /// Returns true if this rate is no limit.
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// How long `units` take at this rate; zero without a limit.
    ///
    /// Saturates at about 584 years, so that a rate of zero cannot divide.
    #[must_use]
    pub const fn time_for(self, units: u64) -> Nanos {
        if self.is_unlimited() {
            return Nanos(0);
        }
        if self.0 == 0 {
            return Nanos(u64::MAX);
        }
        // Up to 18 GB the product fits 64 bits, where division is several times faster.
        if let Some(product) = units.checked_mul(Nanos::SECOND.0) {
            return Nanos(product / self.0);
        }
        let nanos = units as u128 * Nanos::SECOND.0 as u128 / self.0 as u128;
        if nanos > u64::MAX as u128 { Nanos(u64::MAX) } else { Nanos(nanos as u64) }
    }

    /// How many units pass in `time`; saturates.
    #[must_use]
    pub const fn units_in(self, time: Nanos) -> u64 {
        if self.is_unlimited() {
            return u64::MAX;
        }
        let units = self.0 as u128 * time.0 as u128 / Nanos::SECOND.0 as u128;
        if units > u64::MAX as u128 { u64::MAX } else { units as u64 }
    }
}

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// `count` milliseconds.
    #[must_use]
    pub const fn from_millis(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000))
    }

    /// The sum, or the longest duration that there can be.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without the other one; zero if that is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Seconds, for people and statistics.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// A moment of `CLOCK_MONOTONIC`, in nanoseconds since that began to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// The first moment: whatever is due then is due now.
    pub const FIRST: Self = Self(0);

    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment that is so much later, or [`Self::NEVER`].
    #[must_use]
    pub const fn plus(self, time: Nanos) -> Self {
        Self(self.0.saturating_add(time.0))
    }

    /// The moment that is so much earlier, or the first one.
    #[must_use]
    pub const fn minus(self, time: Nanos) -> Self {
        Self(self.0.saturating_sub(time.0))
    }

    /// How long ago an earlier moment was then; zero if it was not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_units_are_inverse() {
        let rate = Rate::per_second(5 << 20);
        assert_eq!(rate.time_for(5 << 20), Nanos::SECOND);
        assert_eq!(rate.units_in(Nanos::SECOND), 5 << 20);
        assert_eq!(rate.time_for(5 << 50), Nanos(1_000_000_000 << 30));
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Rate::per_second(0).time_for(1), Nanos(u64::MAX));
        assert_eq!(Rate::per_second(1).time_for(u64::MAX), Nanos(u64::MAX));
        assert_eq!(Rate::UNLIMITED.time_for(u64::MAX), Nanos(0));
        assert_eq!(Rate::UNLIMITED.units_in(Nanos(1)), u64::MAX);
    }
}
