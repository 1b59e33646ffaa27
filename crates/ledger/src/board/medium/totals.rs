//! Totals that a medium counts from the start of the machine.

use discnice_units::Nanos;

/// Bytes that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Read, or received.
    pub inward: u64,
    /// Written, or sent.
    pub outward: u64,
}

impl Moved {
    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            inward: self.inward.saturating_add(other.inward),
            outward: self.outward.saturating_add(other.outward),
        }
    }

    /// What this has more than `before`: nothing where the total went down, as one does that starts
    /// anew, or that leaves out what is only estimated.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            inward: risen(self.inward, before.inward),
            outward: risen(self.outward, before.outward),
        }
    }

    /// Returns the sum of both directions.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.inward.saturating_add(self.outward)
    }

    /// The part of this that `part` is of `whole`.
    pub(in crate::board) fn part(self, part: u64, whole: u64) -> Self {
        if part >= whole {
            return self;
        }
        let scale = |bytes: u64| (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64;
        Self { inward: scale(self.inward), outward: scale(self.outward) }
    }
}

/// By how much a total has risen that may have gone below zero.
const fn risen(all: u64, before: u64) -> u64 {
    let more = all.wrapping_sub(before).cast_signed();
    if more < 0 { 0 } else { more.cast_unsigned() }
}

/// The largest request of a disk of which that is not known: `max_sectors_kb` of most disks since Linux 6.16. Before, it was
/// 1.25 MiB.
const LARGEST: u64 = 4 << 20;

/// What a disk had to do since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// For how long it had something to do.
    pub busy: Nanos,
    /// Requests that it has done.
    pub requests: u64,
    /// For how long these waited and were served, all together.
    pub waited: Nanos,
    /// Requests that it has to do now.
    pub in_flight: u64,
    /// Bytes of the largest request that it is given; zero while that is not known.
    pub largest: u64,
}

impl Work {
    /// Bytes of the requests that it has to do now, at most.
    pub(in crate::board) const fn in_hand(&self) -> u64 {
        let largest = if self.largest == 0 { LARGEST } else { self.largest };
        self.in_flight.saturating_mul(largest)
    }

    /// Returns the work of two disks together.
    pub(in crate::board) const fn plus(self, other: Self) -> Self {
        Self {
            busy: self.busy.plus(other.busy),
            requests: self.requests.saturating_add(other.requests),
            waited: self.waited.plus(other.waited),
            in_flight: self.in_flight.saturating_add(other.in_flight),
            largest: if self.largest > other.largest { self.largest } else { other.largest },
        }
    }
}
