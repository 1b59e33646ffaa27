//! Corrects what was charged to a meter once it is known what passed.

use discnice_units::{Moment, Nanos, Rate};

use super::{Meter, longest_debt};
use crate::policy::choice::Chosen;
use crate::policy::{Pace, Past};
use crate::primitive::Ordering;

impl Meter {
    //= rate-windows/4-lost-bandwidth
    /// Records that `actual` units passed, of which `reserved` had been reserved.
    pub fn settle(&self, pace: Pace, now: Moment, reserved: u64, actual: u64) {
        let policy = pace.at(self.rate());
        if actual > 0 {
            self.total.fetch_add(actual, Ordering::Relaxed);
        }
        // A policy that looks back has had entered what was reserved.
        let entered = if self.enters(&policy) { reserved } else { 0 };
        self.recent.add(now, actual.saturating_sub(entered));
        self.recent.take(now, entered.saturating_sub(actual));
        self.correct(&policy, now, reserved, actual);
    }

    /// Whether what is reserved is entered at once.
    fn enters(&self, policy: &Chosen) -> bool {
        policy.looks_back() > Nanos(0) && !policy.rate().is_unlimited()
    }

    //= rate-windows/8-feedback
    /// Takes back `units` that were charged and then never reached the disk.
    pub fn credit(&self, pace: Pace, now: Moment, units: u64) {
        let _ = self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |total| {
            Some(total.saturating_sub(units))
        });
        let policy = pace.at(self.rate());
        if self.enters(&policy) {
            self.recent.take(now, units);
        }
        self.correct(&policy, now, units, 0);
    }

    /// Records that `amount` units, which are charged already, are paid for only after `time`. They are paid for earlier
    /// where the least rate has them from the moment when they began; then returns when that is.
    pub(crate) fn prolong(
        &self,
        pace: Pace,
        now: Moment,
        (amount, time): (u64, Nanos),
        least: Option<(Rate, Moment)>,
    ) -> Option<Moment> {
        let rule = pace.rule(self.rate());
        if rule.rate.is_unlimited() {
            return None;
        }
        let longest = longest_debt(rule.rate);
        let mut kept = None;
        let _ = self.frontier.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |frontier| {
            let frontier = Moment(frontier);
            let long = rule.prolong(frontier, now, amount, (time, longest));
            let least = least.map(|(rate, begun)| rule.no_later(frontier, begun, amount, rate));
            kept = least.filter(|least| *least < long);
            Some(kept.unwrap_or(long).0)
        });
        kept
    }

    fn correct(&self, policy: &Chosen, now: Moment, reserved: u64, actual: u64) {
        if policy.rate().is_unlimited() || reserved == actual {
            return;
        }
        let passed = self.passed(policy, now);
        let _ = self.frontier.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |frontier| {
            let frontier = Moment(frontier);
            let corrected = if actual > reserved {
                policy.charge(Past { frontier, passed }, now, actual - reserved)
            } else {
                policy.refund(frontier, reserved - actual)
            };
            Some(corrected.0)
        });
    }
}
