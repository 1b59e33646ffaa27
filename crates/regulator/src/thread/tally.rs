//! Calls by the reason for which they went on, until the next look adds them to the class.

use core::cell::Cell;

use discnice_ledger::passed::Count;
use discnice_ledger::trace::Why;

const REASONS: usize = Why::ALL.len();

/// Calls and bytes for each reason.
#[derive(Debug, Default)]
pub struct Tally {
    calls: [Cell<u32>; REASONS],
    bytes: [Cell<u64>; REASONS],
}

impl Tally {
    /// Counts a call that moves `bytes`.
    #[inline(always)]
    pub fn count(&self, why: Why, bytes: u64) {
        self.count_call(why);
        self.count_bytes(why, bytes);
    }

    /// Counts a call alone: one that is made in pieces.
    #[inline(always)]
    pub fn count_call(&self, why: Why) {
        if let Some(calls) = self.calls.get(why as usize) {
            calls.set(calls.get().wrapping_add(1));
        }
    }

    /// Counts bytes alone: a piece of a call.
    #[inline(always)]
    pub fn count_bytes(&self, why: Why, bytes: u64) {
        if let Some(all) = self.bytes.get(why as usize) {
            all.set(all.get().wrapping_add(bytes));
        }
    }

    /// Clears what was counted, and calls `add` with it.
    pub fn take(&self, add: impl Fn(Why, Count)) {
        let counts = self.calls.iter().zip(&self.bytes);
        for (why, (calls, bytes)) in Why::ALL.into_iter().zip(counts) {
            if calls.get() != 0 || bytes.get() != 0 {
                add(why, Count { calls: calls.take().into(), bytes: bytes.take() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_taken_once() {
        let tally = Tally::default();
        tally.count(Why::Cached, 4096);
        tally.count(Why::Cached, 1);
        tally.count_bytes(Why::Turn, 7);
        tally.count_call(Why::Turn);
        let taken = Cell::new(Vec::new());
        let take = || {
            tally.take(|why, count| {
                let mut all = taken.take();
                all.push((why, count));
                taken.set(all);
            });
            taken.take()
        };
        let cached = (Why::Cached, Count { calls: 2, bytes: 4097 });
        assert_eq!(take(), [cached, (Why::Turn, Count { calls: 1, bytes: 7 })]);
        assert!(take().is_empty());
    }
}
