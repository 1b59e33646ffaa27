//! What passed recently: the rate window's hundred entries (Rate Windows, 3.2, figure 2).
//!
//! The paper's entries are operations; ours are slots of a hundredth of five seconds, into which
//! any number of processes add, so that the window always covers its full time.

use discnice_units::{Moment, Nanos};

use crate::primitive::{AtomicU64, Ordering};

/// Entries of the window.
pub const SLOTS: usize = 100;
/// Time that one entry covers.
pub const SLOT: Nanos = Nanos::from_millis(50);

/// A slot packs the number of its time span (24 bits) and the units that passed in it (40 bits).
const UNITS_BITS: u32 = 40;
const UNITS_MAX: u64 = (1 << UNITS_BITS) - 1;

//= rate-windows/3.2-queue
/// The window.
#[derive(Debug)]
#[repr(C)]
pub struct Recent {
    slots: [AtomicU64; SLOTS],
}

/// The number of the time span, cut to what a slot keeps; it repeats after nine days, when no
/// slot that old can be mistaken for a new one unless the class was idle just that long.
const fn span(now: Moment) -> u64 {
    (now.0 / SLOT.0) & ((1 << (64 - UNITS_BITS)) - 1)
}

impl Recent {
    #[cfg(any(test, loom))]
    pub(crate) fn new() -> Self {
        Self { slots: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Notes that `units` passed now.
    pub fn add(&self, now: Moment, units: u64) {
        if units == 0 {
            return;
        }
        let span = span(now);
        let slot = &self.slots[(now.0 / SLOT.0) as usize % SLOTS];
        // Relaxed throughout: the numbers are for people, nothing is published through them.
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
            let before = if old >> UNITS_BITS == span { old & UNITS_MAX } else { 0 };
            Some(span << UNITS_BITS | before.saturating_add(units).min(UNITS_MAX))
        });
    }

    /// Takes back `units` that were entered and did not pass, the latest first.
    pub fn take(&self, now: Moment, mut units: u64) {
        for back in 0..SLOTS as u64 {
            let Some(then) = now.0.checked_sub(back * SLOT.0).filter(|_| units > 0) else { return };
            let slot = &self.slots[(then / SLOT.0) as usize % SLOTS];
            let mut taken = 0;
            let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
                let is_it = old >> UNITS_BITS == span(Moment(then));
                taken = if is_it { (old & UNITS_MAX).min(units) } else { 0 };
                (taken > 0).then(|| old - taken)
            });
            units -= taken;
        }
    }

    /// Units that passed in this time, up to now; of the oldest slot, the part that lies in it.
    #[must_use]
    pub fn within(&self, now: Moment, time: Nanos) -> u64 {
        let spans = time.0 / SLOT.0;
        let begun = now.0 % SLOT.0;
        // With the present slot, which has just begun, that many cover less than the time.
        let oldest = now.minus(Nanos(spans * SLOT.0)).0;
        let slot = self.slots[(oldest / SLOT.0) as usize % SLOTS].load(Ordering::Relaxed);
        let is_it = spans < SLOTS as u64 && slot >> UNITS_BITS == span(Moment(oldest));
        let units = if is_it { slot & UNITS_MAX } else { 0 };
        let part = u128::from(units) * u128::from(SLOT.0 - begun) / u128::from(SLOT.0);
        self.until(now, spans).saturating_add(part as u64)
    }

    /// Units that passed in the last `spans` complete slots before now.
    #[must_use]
    pub fn sum(&self, now: Moment, spans: u64) -> u64 {
        let spans = spans.min(SLOTS as u64 - 1);
        (1..=spans)
            .filter_map(|back| {
                let then = Moment(now.0.checked_sub(back * SLOT.0)?);
                let value = self.slots[(then.0 / SLOT.0) as usize % SLOTS].load(Ordering::Relaxed);
                (value >> UNITS_BITS == span(then)).then_some(value & UNITS_MAX)
            })
            .sum()
    }

    /// Units that passed in the last `spans` slots, of which the present one is the last.
    #[must_use]
    pub fn until(&self, now: Moment, spans: u64) -> u64 {
        self.latest(now, spans).sum()
    }

    /// The most that one of these slots has.
    #[must_use]
    pub fn largest(&self, now: Moment, spans: u64) -> u64 {
        self.latest(now, spans).max().unwrap_or(0)
    }

    fn latest(&self, now: Moment, spans: u64) -> impl Iterator<Item = u64> {
        (0..spans.min(SLOTS as u64)).filter_map(move |back| {
            let then = Moment(now.0.checked_sub(back * SLOT.0)?);
            let value = self.slots[(then.0 / SLOT.0) as usize % SLOTS].load(Ordering::Relaxed);
            (value >> UNITS_BITS == span(then)).then_some(value & UNITS_MAX)
        })
    }

    /// Units per second over the last second.
    #[must_use]
    pub fn rate(&self, now: Moment) -> u64 {
        self.sum(now, Nanos::SECOND.0 / SLOT.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    //= rate-windows/3.2-queue
    #[test]
    fn old_entries_fall_out() {
        let recent = Recent::new();
        let start = Moment(77 * Nanos::SECOND.0);
        recent.add(start, 100);
        recent.add(start.plus(Nanos::from_millis(49)), 1);
        assert_eq!(recent.sum(start.plus(Nanos::from_millis(60)), 1), 101);
        assert_eq!(recent.rate(start.plus(Nanos::from_millis(900))), 101);
        assert_eq!(recent.rate(start.plus(Nanos::from_millis(1100))), 0);
        assert_eq!(recent.sum(start.plus(Nanos::from_millis(4900)), 99), 101);
        recent.add(start.plus(Nanos(5 * Nanos::SECOND.0)), 7);
        assert_eq!(recent.sum(start.plus(Nanos::from_millis(5060)), 99), 7);
    }

    #[test]
    fn a_slot_saturates() {
        let recent = Recent::new();
        recent.add(Moment::FIRST, u64::MAX);
        recent.add(Moment::FIRST, u64::MAX);
        assert_eq!(recent.sum(Moment(SLOT.0), 1), UNITS_MAX);
    }

    #[test]
    fn the_oldest_slot_counts_in_part() {
        let recent = Recent::new();
        let start = Moment(77 * Nanos::SECOND.0);
        recent.add(start, 1000);
        let after = |millis| recent.within(start.plus(Nanos::from_millis(millis)), Nanos::SECOND);
        assert_eq!([after(0), after(999), after(1000), after(1025)], [1000, 1000, 1000, 500]);
        assert_eq!(after(1050), 0);
    }

    #[test]
    fn what_did_not_pass_is_taken_from_the_latest() {
        let recent = Recent::new();
        let start = Moment(77 * Nanos::SECOND.0);
        let later = start.plus(Nanos::from_millis(400));
        recent.add(start, 100);
        recent.add(later, 10);
        recent.take(later, 30);
        assert_eq!(recent.until(later, 1), 0);
        assert_eq!(recent.until(later, 20), 80);
        recent.take(later, u64::MAX);
        assert_eq!(recent.until(later, 20), 0);
    }
}
