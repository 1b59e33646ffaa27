//! One threshold of a class, and what was charged to it.

mod settling;

use discnice_units::{Moment, Nanos, Rate};

use crate::policy::choice::Chosen;
use crate::policy::{Pace, Past};
use crate::primitive::{AtomicU64, Ordering};
use crate::recent::Recent;

/// No call of ours owes longer than this many bytes take, and the queue's two seconds. A frontier
/// further ahead was scribbled, or is the debt of one enormous page fault: then the rest is waived.
const BELIEVABLE: u64 = 64 << 20;

/// Nor do all the members that are charged from outside, each for what it did since it was looked at
/// last, owe longer than this many bytes take.
const BELIEVABLE_OUTSIDE: u64 = 1 << 30;

/// What an operation weighs where amounts are weighed in bytes: as much as the smallest piece that
/// passes at once.
const OPERATION: u64 = 128 << 10;

//= rate-windows/3.1-aggregate
/// One threshold.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Meter {
    /// Units per second that hold now; `u64::MAX` for none.
    rate: AtomicU64,
    /// See `crate::policy::pace`.
    frontier: AtomicU64,
    /// Units charged since the class was made.
    total: AtomicU64,
    recent: Recent,
    /// What is set, whether it holds now or not.
    threshold: AtomicU64,
}

impl Meter {
    #[cfg(any(test, loom))]
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate: AtomicU64::new(rate.get()),
            frontier: AtomicU64::new(0),
            total: AtomicU64::new(0),
            recent: Recent::new(),
            threshold: AtomicU64::new(rate.get()),
        }
    }

    /// The rate that holds now.
    #[must_use]
    pub fn rate(&self) -> Rate {
        claimed(self.rate.load(Ordering::Relaxed))
    }

    /// The threshold that is set; it may hold only in part, or only while others are busy.
    #[must_use]
    pub fn threshold(&self) -> Rate {
        claimed(self.threshold.load(Ordering::Relaxed))
    }

    /// Sets the threshold, which holds from the next [`Meter::set_rate`] on.
    pub fn set_threshold(&self, threshold: Rate) {
        self.threshold.store(threshold.get(), Ordering::Relaxed);
    }

    /// Units charged since the class was made.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// What passed in the last seconds.
    #[must_use]
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// When everything charged so far is paid for; zero when nothing is owed.
    #[inline]
    #[must_use]
    pub fn frontier(&self) -> Moment {
        Moment(self.frontier.load(Ordering::Relaxed))
    }

    //= discnice/5.1-messages
    /// Takes a place in the queue for so many bytes; `None` where the policy gives none yet
    /// ([`Meter::retry_at`]).
    pub fn reserve(&self, pace: Pace, now: Moment, bytes: u64) -> Option<Moment> {
        self.reserve_by(&pace.at(self.rate()), now, bytes, 1)
    }

    /// How many bytes a member that has to wait reserves at once.
    #[must_use]
    pub fn turn(&self, pace: Pace) -> u64 {
        match pace.at(self.rate()) {
            Chosen::Window(rule) => rule.turn(),
            Chosen::Sleep(_) => u64::MAX,
        }
    }

    /// Returns true if others have taken a place behind a member that has just had its turn, of so many bytes.
    #[must_use]
    pub fn is_waited_for(&self, pace: Pace, now: Moment, turn: u64) -> bool {
        let own = now.plus(pace.rule(self.rate()).time_for(turn));
        self.frontier() > own.plus(pace.shortest_sleep())
    }

    /// Takes a place in the queue for operations. They pass one by one, so none is ever a large
    /// part of what may pass in a window, and more unused allowance can be kept than beside a large
    /// piece ([`crate::policy::Rule::credit`]).
    pub fn reserve_operations(&self, pace: Pace, now: Moment, count: u64) -> Option<Moment> {
        self.reserve_by(&pace.at(self.rate().times(OPERATION)), now, count, OPERATION)
    }

    /// Reserves `count` units that weigh `each`.
    fn reserve_by(&self, policy: &Chosen, now: Moment, count: u64, each: u64) -> Option<Moment> {
        if policy.rate().is_unlimited() {
            return Some(now);
        }
        let passed = self.passed(policy, now).saturating_mul(each);
        let amount = count.saturating_mul(each);
        let latest = latest(now, policy.rate());
        let mut start = None;
        let _ = self.frontier.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |frontier| {
            // One that cannot be ours is brought back in the same step: it may be scribbled over at any moment.
            let past = Past { frontier: Moment(frontier).min(latest), passed };
            let asked = policy.reserve(past, now, amount);
            start = asked.start;
            Some(asked.frontier.0)
        });
        if start.is_some() && policy.looks_back() > Nanos(0) {
            self.recent.add(now, count);
        }
        start
    }

    /// What has passed in the time over which a policy looks back.
    fn passed(&self, policy: &Chosen, now: Moment) -> u64 {
        match policy.looks_back() {
            Nanos(0) => 0,
            time => self.recent.within(now, time),
        }
    }

    /// When everything charged so far is paid for, `bytes` just now from outside; zero without a
    /// threshold. A scribbled frontier is brought back first.
    #[must_use]
    pub fn paid_at(&self, now: Moment, bytes: u64) -> Moment {
        self.paid_by(self.rate(), now, bytes)
    }

    /// Returns when everything charged so far is paid for, `count` operations just now
    /// ([`Meter::reserve_operations`]).
    #[must_use]
    pub fn operations_paid_at(&self, now: Moment, count: u64) -> Moment {
        self.paid_by(self.rate().times(OPERATION), now, count.saturating_mul(OPERATION))
    }

    fn paid_by(&self, rate: Rate, now: Moment, amount: u64) -> Moment {
        if rate.is_unlimited() {
            return Moment::FIRST;
        }
        let latest = now.plus(rate.time_for(amount.saturating_add(BELIEVABLE_OUTSIDE)));
        if self.frontier() > latest {
            self.heal(now, rate);
        }
        self.frontier().min(latest)
    }

    /// Brings a frontier back that cannot be ours.
    fn heal(&self, now: Moment, rate: Rate) {
        let (frontier, limit) = (self.frontier.load(Ordering::Relaxed), latest(now, rate).0);
        if frontier > limit {
            // A lost race means that another process did it.
            let _ = self.frontier.compare_exchange(
                frontier,
                limit,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }

    /// When to try [`Meter::reserve`] again.
    #[must_use]
    pub fn retry_at(&self, pace: Pace, now: Moment) -> Moment {
        let rate = self.rate();
        pace.at(rate).retry_at(self.frontier().min(latest(now, rate)), now)
    }

    /// When what is owed now is paid for at the latest.
    #[must_use]
    pub fn latest(&self, now: Moment) -> Moment {
        latest(now, self.rate())
    }

    /// When operations that are owed now are paid for at the latest ([`Meter::reserve_operations`]).
    #[must_use]
    pub fn operations_latest(&self, now: Moment) -> Moment {
        latest(now, self.rate().times(OPERATION))
    }

    /// Forgets a frontier that has passed with all its credit, so that the way of a cached call
    /// need not look at the clock.
    pub fn calm_down(&self, pace: Pace, now: Moment) {
        let frontier = self.frontier.load(Ordering::Relaxed);
        let credit = pace.at(Rate::UNLIMITED).forgets();
        if frontier != 0 && frontier < now.minus(credit).0 {
            // A lost race means that another process charged: then nothing is calm.
            let _ =
                self.frontier.compare_exchange(frontier, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Nothing passes as unused allowance of the time before `moment`.
    pub fn forfeit(&self, moment: Moment) {
        if !self.rate().is_unlimited() {
            let _ = self.frontier.fetch_max(moment.0, Ordering::AcqRel);
        }
    }

    /// Changes the rate that holds; the debt in units stays.
    pub fn set_rate(&self, pace: Pace, now: Moment, rate: Rate) {
        let (order, load) = (Ordering::AcqRel, Ordering::Relaxed);
        // Of several processes that make the same change at once, one rescales the debt.
        let old = pace.rule(claimed(self.rate.swap(rate.get(), order)));
        if old.rate == rate {
            return;
        }
        self.heal(now, old.rate);
        let _ = self
            .frontier
            .fetch_update(order, load, |frontier| Some(old.rescale(Moment(frontier), now, rate).0));
    }
}

/// When what is owed at this rate is paid for at the latest.
const fn latest(now: Moment, rate: Rate) -> Moment {
    if rate.is_unlimited() { now } else { now.plus(longest_debt(rate)) }
}

/// See [`BELIEVABLE`].
const fn longest_debt(rate: Rate) -> Nanos {
    rate.time_for(BELIEVABLE).plus(Nanos(2 * Nanos::SECOND.0))
}

/// A rate of zero would never end; we never write one, so it is not ours.
fn claimed(word: u64) -> Rate {
    match word {
        0 => Rate::UNLIMITED,
        units => Rate::per_second(units),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
