//! What one thread remembers between two looks at the account, by concept:
//! - [`Countdown`]: when to look again;
//! - [`Cache`]: what the last calls found in the page cache;
//! - [`Switches`]: whether the thread waited;
//! - [`Names`]: metadata operations that are not yet counted;
//! - [`Writes`] and [`Deletions`]: what it writes, and what of that it deletes;
//! - [`Outcomes`]: what became of the present call;
//! - [`Tally`]: why the calls before it went on.
//!
//! Each states its thresholds. Here is only what concerns several of them. A method that counts is
//! named by a verb and returns the reason for a look ([`Due`]); predicates change nothing.

mod cache;
mod countdown;
mod names;
mod outcome;
mod switches;
mod tally;
mod writes;

use core::cell::Cell;

use discnice_ledger::trace::Why;
use discnice_units::Moment;

use crate::backlog::Backlog;
use cache::Cache;
pub use countdown::{Countdown, Due};
pub use names::Names;
pub use outcome::{Outcome, Outcomes};
use switches::Switches;
pub use tally::Tally;
pub use writes::{Deletions, Writes};

/// Per-thread state; all zeroes is a fresh one.
#[derive(Debug, Default)]
pub struct Thread {
    /// When to look at the account.
    pub countdown: Countdown,
    /// What the last calls found cached.
    pub cache: Cache,
    /// Whether the thread waited.
    pub switches: Switches,
    /// Metadata operations that are not yet counted.
    pub names: Names,
    /// What it wrote since the last look.
    pub writes: Writes,
    /// What it deletes.
    pub deletions: Deletions,
    /// What became of the present call.
    pub outcomes: Outcomes,
    /// Why calls went on since the last look.
    pub tally: Tally,
    /// Written data that it has started on its way.
    pub(crate) backlog: Backlog,
    /// Start of the piece of work being timed; zero if none.
    begun: Cell<u64>,
}

impl Thread {
    /// Records the thread's voluntary context switches before a call on names or directories;
    /// `waits` is only asked if the call is likely to wait.
    pub fn note_waits_before(&self, waits: impl FnOnce() -> u64) {
        if self.cache.missed() {
            self.switches.note(waits());
        }
    }

    /// Counts a call on names that took `cycles`; returns why the account must be read. A predicted
    /// call is not judged by its time alone: creating a name takes as long as reading a block from
    /// a fast device, but does not wait.
    pub fn count_waits(&self, cycles: u64, waits: impl FnOnce() -> u64) -> Option<Due> {
        let asks = self.cache.missed() || cycles > countdown::FAST;
        let waited = if asks { self.switches.take_waits(waits()) } else { 0 };
        self.switches.note_waited(waited);
        self.countdown.count_waits(waited)
    }

    /// Notes why the call goes on and counts it, with the bytes that it moves.
    #[inline(always)]
    pub fn proceed(&self, why: Why, bytes: isize) {
        self.outcomes.because(why);
        self.tally.count(why, bytes.max(0) as u64);
    }

    /// Counts a call that was admitted, with the bytes that it moved.
    #[inline(never)]
    pub fn count_admitted(&self, bytes: isize) {
        self.tally.count(self.outcomes.why(), bytes.max(0) as u64);
    }

    /// Counts a piece of a call that was admitted.
    #[inline(never)]
    pub fn count_piece(&self, bytes: isize) {
        self.tally.count_bytes(self.outcomes.why(), bytes.max(0) as u64);
    }

    /// Counts a call that was made in pieces.
    #[inline(never)]
    pub fn count_pieces(&self) {
        self.tally.count_call(self.outcomes.why());
    }

    /// Judges a slow read that passed without a probe; returns true if it was slow because the
    /// thread waited. A thread that lost the processor is slow for that reason alone.
    pub(crate) fn judge_slow(&self, switches: (u64, u64)) -> bool {
        let (waited, excused) = self.switches.note_and_tell(switches);
        self.cache.note_slow(waited, excused);
        waited
    }

    /// Notes that the account was read; `missed` says that the disk had been read.
    pub(crate) fn note_look(&self, missed: bool) {
        self.countdown.restart();
        self.writes.restart();
        self.cache.note(missed);
    }

    /// A piece of work begins that is to be timed.
    pub(crate) fn begin(&self, now: Moment) {
        self.begun.set(now.0);
    }

    /// Ends the timed piece of work; returns its start, if that was seen.
    pub(crate) fn end(&self) -> Option<Moment> {
        let begun = self.begun.take();
        (begun != 0).then_some(Moment(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::cache::{DOUBTED, TRUSTED, TRUSTED_MOST};
    use super::countdown::{CALLS, TIMED};
    use super::*;

    #[test]
    fn names_are_timed_until_they_are_found_cached_and_now_and_then_after() {
        let thread = Thread::default();
        let allows = || !thread.cache.missed() && thread.countdown.allows_untimed();
        assert!(!allows(), "nothing has been looked at yet");
        thread.note_look(false);
        let timed = (0..2 * CALLS)
            .filter(|_| {
                let passes = allows();
                if passes {
                    thread.countdown.count_untimed();
                } else if thread.countdown.count_metadata(900).is_some() {
                    thread.note_look(false);
                }
                !passes
            })
            .count();
        // Two more where a look fell between.
        let wanted = 2 * CALLS / TIMED;
        assert!((wanted..=wanted + 2).contains(&(timed as u32)), "{timed}");
        thread.note_look(true);
        assert!(!allows(), "the disk was read");
    }

    #[test]
    fn a_predicted_name_is_judged_by_its_waits() {
        let thread = Thread::default();
        thread.note_waits_before(|| 7);
        assert_eq!(thread.count_waits(1_000_000, || 7), None, "it took long, but did not wait");
        assert_eq!(thread.count_waits(900, || 9), Some(Due::Waited));
        assert_eq!(thread.switches.waited(), 2);
        thread.note_look(false);
        thread.note_waits_before(|| unreachable!("all is cached"));
        let due = thread.count_waits(900, || unreachable!("nor did it take long"));
        assert_eq!(due, None);
        assert_eq!(thread.count_waits(20_000, || 10), Some(Due::Waited));
        assert_eq!(thread.switches.waited(), 1);
        let due = thread.count_waits(20_000, || 1);
        assert_eq!(due, Some(Due::Waited), "a forked child begins anew");
        assert_eq!(thread.switches.waited(), 1);
    }

    #[test]
    fn probes_end_while_all_is_found_and_begin_again_after_a_surprise() {
        let thread = Thread::default();
        let find = |count| (0..count).for_each(|_| thread.cache.note_probe(true));
        find(TRUSTED - 1);
        assert!(!thread.cache.finds_all());
        thread.cache.note_probe(false);
        find(TRUSTED);
        assert!(thread.cache.finds_all());
        thread.switches.note_both((5, 5));
        assert!(!thread.judge_slow((5, 6)), "it lost the processor");
        assert!(thread.cache.finds_all());
        assert!(!thread.judge_slow((5, 6)), "the cause is unknown");
        assert!(!thread.cache.finds_all());
        find(TRUSTED);
        assert!(thread.judge_slow((6, 6)), "it waited");
        find(TRUSTED - 1);
        assert!(!thread.cache.finds_all());
        (0..100).for_each(|_| thread.cache.note_round());
        let surprises = (0..100).take_while(|_| {
            let _ = thread.judge_slow((6, 6));
            thread.cache.finds_all()
        });
        assert_eq!(surprises.count() as u32, (TRUSTED_MOST - TRUSTED) / DOUBTED);
    }
}
