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

use discnice_units::Bytes;

/// How much memory a caller can use.
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
    /// At least `min`, at most `max`, in multiples of `multiple`.
    ///
    /// # Errors
    /// As [`DemandError`] says.
    pub const fn new(min: Bytes, max: Bytes, multiple: Bytes) -> Result<Self, DemandError> {
        let (min, max, multiple) = (min.get(), max.get(), multiple.get());
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
    pub const fn least(&self) -> Bytes {
        Bytes::new(self.min.div_ceil(self.multiple) * self.multiple)
    }

    /// The most that is of use.
    #[must_use]
    pub const fn most(&self) -> Bytes {
        Bytes::new(self.max / self.multiple * self.multiple)
    }

    /// What of `free` memory this demand takes; `None` if it is too little.
    #[must_use]
    pub const fn take(&self, free: Bytes) -> Option<Bytes> {
        let most = if free.get() < self.max { free.get() } else { self.max };
        let whole = most / self.multiple * self.multiple;
        if whole < self.min { None } else { Some(Bytes::new(whole)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= gray-box/4.3.2-fixed
    #[test]
    fn demands() {
        let of = |sizes: [u64; 3]| {
            let [min, max, multiple] = sizes.map(Bytes::new);
            Demand::new(min, max, multiple)
        };
        assert_eq!(of([2, 1, 1]), Err(DemandError::MinAboveMax));
        assert_eq!(of([1, 1, 0]), Err(DemandError::Zero));
        assert_eq!(of([5, 9, 10]), Err(DemandError::NoMultiple));
        assert_eq!(of([1, u64::MAX, 1]), Err(DemandError::TooLarge));
        let taken = |demand: Demand, free| demand.take(Bytes::new(free)).map(Bytes::get);
        let demand = of([100, 1000, 30]).unwrap();
        assert_eq!((demand.least().get(), demand.most().get()), (120, 990));
        let free = [99, 119, 121, u64::MAX];
        assert_eq!(free.map(|free| taken(demand, free)), [None, None, Some(120), Some(990)]);
        let fixed = of([100, 100, 1]).unwrap();
        assert_eq!([99, 100, 1000].map(|free| taken(fixed, free)), [None, Some(100), Some(100)]);
    }
}
