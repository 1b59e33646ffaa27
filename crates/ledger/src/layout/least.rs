//! The least rate: what a class that gives way may have of its disks however much others wait for them.

use discnice_units::{Moment, Nanos, Rate};

use crate::layout::{Class, Direction};
use crate::policy::Resource;
use crate::primitive::{AtomicU64, Ordering};

/// The class counts as kept at its least rate for so long after what that let pass was paid for.
const LATELY: Nanos = Nanos::from_millis(100);

/// What is set, and until when it decided last.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Least {
    /// Bytes per second; zero for none.
    rate: AtomicU64,
    /// When the last piece is paid for that would have had to wait for longer without it.
    decided: AtomicU64,
}

impl Class {
    /// The least rate, if there is one.
    #[must_use]
    pub fn at_least(&self) -> Option<Rate> {
        let units = self.least.rate.load(Ordering::Relaxed);
        (units > 0).then(|| Rate::per_second(units))
    }

    pub(super) fn set_at_least(&self, least: Option<Rate>) {
        self.least.rate.store(least.map_or(0, Rate::get), Ordering::Relaxed);
    }

    /// Returns true if the class gives way, and passes as soon as it does because of its least rate.
    #[must_use]
    pub fn keeps_least(&self, now: Moment) -> bool {
        let decided = Moment(self.least.decided.load(Ordering::Relaxed));
        decided.plus(LATELY) > now && self.at_least().is_some() && self.yields()
    }

    //= rate-windows/3.1-keeps-threshold
    /// Records that a piece of `amount` bytes, which is charged already, began at `begun` and is paid for only after
    /// `time`, or as soon as the least rate has it.
    pub fn prolong(
        &self,
        direction: Direction,
        (begun, now): (Moment, Moment),
        amount: u64,
        time: Nanos,
    ) {
        let (pace, least) = (self.pace(), self.at_least().map(|least| (least, begun)));
        for resource in [Resource::Total, direction.into()] {
            let time = self.in_share(now, resource, time);
            if let Some(paid) = self.meter(resource).prolong(pace, now, (amount, time), least) {
                self.least.decided.fetch_max(paid.0, Ordering::Relaxed);
            }
        }
    }

    /// Returns so much of a disk's time for a class that has only a part of its threshold, because it shares the disk with
    /// others that give way: the smaller the part, the more. What a lease or the user's own policy allows is no such part.
    fn in_share(&self, now: Moment, resource: Resource, time: Nanos) -> Nanos {
        let (part, whole) = (self.meter(resource).rate(), self.meter(resource).threshold());
        if whole.is_unlimited() || part >= self.ceiling(now, resource) {
            return time;
        }
        let nanos = u128::from(time.0) * u128::from(whole.get()) / u128::from(part.get());
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
