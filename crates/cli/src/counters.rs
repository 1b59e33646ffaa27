//! What the meters and counters of a class show at one moment.

use discnice_estimator::Totals;
use discnice_ledger::Class;
use discnice_ledger::policy::Resource;
use discnice_ledger::waits::{BUCKETS, Counts};

/// What they show, of one class or of several together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counters {
    /// What passed of each resource, at the place of its number.
    pub totals: [u64; Resource::COUNT],
    /// Waits of members.
    pub waits: u64,
    /// Time that they took, in seconds.
    pub waited: f64,
    /// How long each took.
    pub counts: Counts,
    /// For how long it gave way to others behind the same uplink, in seconds.
    pub yielded: f64,
    /// Bytes that nothing could hold.
    pub unheld: u64,
    /// Bytes by the prediction and by the kernel's account.
    pub prediction: Totals,
    /// Bytes that files which were made cost beside what is predicted or charged.
    pub file_overhead: u64,
}

impl Counters {
    /// The counters of no class.
    pub const ZERO: Self = Self {
        totals: [0; Resource::COUNT],
        waits: 0,
        waited: 0.0,
        counts: [0; BUCKETS],
        yielded: 0.0,
        unheld: 0,
        prediction: Totals { predicted: 0, account: 0 },
        file_overhead: 0,
    };

    /// Reads those of a class.
    pub fn of(class: &Class) -> Self {
        let (waits, waited) = class.waits();
        // A prediction has what an account would have.
        let (_, file_overhead) = class.estimation().overhead();
        Self {
            totals: Resource::ALL.map(|resource| class.meter(resource).total()),
            waits,
            waited: waited.as_secs_f64(),
            counts: class.wait_histogram().counts(),
            yielded: class.uplink().yielded().0 as f64 / 1e9,
            unheld: class.watcher().unheld().get(),
            prediction: class.prediction(),
            file_overhead,
        }
    }

    /// What passed of one resource.
    pub fn total(&self, resource: Resource) -> u64 {
        self.totals[resource as usize]
    }

    /// What was added since earlier. Written data that is deleted before it reaches the disk is credited, so that a meter
    /// may also have gone back; that counts as nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub, |now, before| (now - before).max(0.0))
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add, |one, other| one + other)
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64, of_time: fn(f64, f64) -> f64) -> Self {
        let each = |one: &[u64], other: &[u64], place: usize| of(one[place], other[place]);
        let (one, two) = (self.prediction, other.prediction);
        Self {
            totals: std::array::from_fn(|place| each(&self.totals, &other.totals, place)),
            waits: of(self.waits, other.waits),
            waited: of_time(self.waited, other.waited),
            counts: std::array::from_fn(|place| each(&self.counts, &other.counts, place)),
            yielded: of_time(self.yielded, other.yielded),
            unheld: of(self.unheld, other.unheld),
            prediction: Totals {
                predicted: of(one.predicted, two.predicted),
                account: of(one.account, two.account),
            },
            file_overhead: of(self.file_overhead, other.file_overhead),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Counters of which each is `all`.
    pub fn counters(all: u64) -> Counters {
        Counters {
            totals: [all; Resource::COUNT],
            waits: all,
            waited: all as f64,
            counts: [all; BUCKETS],
            yielded: all as f64,
            unheld: all,
            prediction: Totals { predicted: all, account: all },
            file_overhead: all,
        }
    }

    #[test]
    fn each_is_added_and_subtracted() {
        assert_eq!(counters(2).plus(&counters(5)), counters(7));
        assert_eq!(counters(7).since(&counters(5)), counters(2));
        assert_eq!(counters(5).since(&counters(7)), Counters::ZERO, "what was credited");
        assert_eq!(Counters::ZERO, counters(0));
    }
}
