//! Memory-based admission controller (section 4.3): how much memory is really there, and taking
//! it in one step.
//!
//! The paper's processes know nothing of each other and probe against each other, which cost them
//! 54 %. Here competing callers share a [`Ledger`] of what has been promised and not yet
//! touched, and what Linux tells by now ([`Facts`]) bounds the probing, which is left to find out
//! what the facts do not know.

mod alloc;
mod entry;
mod facts;
mod ledger;
mod locked;
mod region;

pub use alloc::{Grant, Thresholds, gb_alloc, gb_alloc_with};
pub use facts::{Facts, ceiling, facts, has_swap, is_scarce, machine, major_faults, stalled};
pub use ledger::{Admission, Ledger};
pub use region::Region;

/// How much memory a caller can use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    min: u64,
    max: u64,
    multiple: u64,
}

/// Why a demand makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandError {
    /// The least wanted is more than the most wanted.
    MinAboveMax,
    /// A size or the multiple is 0.
    Zero,
    /// No multiple lies between the least and the most.
    NoMultiple,
    /// More than an address space.
    TooLarge,
}

impl std::fmt::Display for DemandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MinAboveMax => "--min is more than --max; lower it or raise the other",
            Self::Zero => "a size of memory is 0; give one from 1 byte on",
            Self::NoMultiple => "no multiple of --multiple lies between --min and --max; lower --multiple or raise --max",
            Self::TooLarge => "more memory than an address space has; lower --max",
        })
    }
}

impl std::error::Error for DemandError {}

impl Demand {
    //= gray-box/4.3.2-fixed
    /// At least `min`, at most `max` bytes, in multiples of `multiple`.
    ///
    /// # Errors
    /// As [`DemandError`] says.
    pub const fn new(min: u64, max: u64, multiple: u64) -> Result<Self, DemandError> {
        if min == 0 || max == 0 || multiple == 0 {
            return Err(DemandError::Zero);
        }
        if min > max {
            return Err(DemandError::MinAboveMax);
        }
        if max > isize::MAX as u64 {
            return Err(DemandError::TooLarge);
        }
        if max / multiple * multiple < min {
            return Err(DemandError::NoMultiple);
        }
        Ok(Self { min, max, multiple })
    }

    /// The least whole multiple that is enough.
    #[must_use]
    pub const fn least(&self) -> u64 {
        self.min.div_ceil(self.multiple) * self.multiple
    }

    /// The most that is of use.
    #[must_use]
    pub const fn most(&self) -> u64 {
        self.max / self.multiple * self.multiple
    }

    /// What of `free` bytes this demand takes; `None` if it is too little.
    #[must_use]
    pub const fn take(&self, free: u64) -> Option<u64> {
        let most = if free < self.max { free } else { self.max };
        let whole = most / self.multiple * self.multiple;
        if whole < self.min { None } else { Some(whole) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= gray-box/4.3.2-fixed
    #[test]
    fn demands() {
        assert_eq!(Demand::new(2, 1, 1), Err(DemandError::MinAboveMax));
        assert_eq!(Demand::new(1, 1, 0), Err(DemandError::Zero));
        assert_eq!(Demand::new(5, 9, 10), Err(DemandError::NoMultiple));
        assert_eq!(Demand::new(1, u64::MAX, 1), Err(DemandError::TooLarge));
        let demand = Demand::new(100, 1000, 30).unwrap();
        assert_eq!((demand.least(), demand.most()), (120, 990));
        assert_eq!(demand.take(99), None);
        assert_eq!(demand.take(119), None);
        assert_eq!(demand.take(121), Some(120));
        assert_eq!(demand.take(u64::MAX), Some(990));
        let fixed = Demand::new(100, 100, 1).unwrap();
        assert_eq!(
            (fixed.take(99), fixed.take(100), fixed.take(1000)),
            (None, Some(100), Some(100))
        );
    }
}
