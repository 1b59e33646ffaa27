//! What one thread remembers between two looks at the account.

use core::cell::Cell;

use discnice_ledger::trace::Why;
use discnice_units::Nanos;

use crate::backlog::Backlog;

/// Calls too fast to look at after which we look all the same: what a call started behind our back
/// (a page fault, an asynchronous read-ahead) is then found soon.
const CALLS: u32 = 256;
/// Interval at which calls on names and directories are timed while all are found cached: what an
/// untimed one has read, a few blocks, is found by the next timed one.
const TIMED: u32 = 4;
/// Metadata operations that pass unasked before they are counted; without a limit they may be
/// counted when the account is read.
const NAMED: u32 = 64;
const NAMED_UNHELD: u32 = 1024;
/// Bytes moved by fast calls after which the account is read.
const BYTES: u32 = 1 << 20;

/// Bytes that may be written between looks, as rewriting the same pages costs the disk nothing.
const WRITTEN: u32 = 64 << 10;
/// Bytes that may be written between looks to pages that are known to be dirty already.
const REWRITTEN: u32 = 512 << 10;

/// Amount that may pass between looks without a limit. Each call adds its bytes, up to a maximum,
/// and a fixed part.
const UNHELD: u32 = 16 << 20;
const UNHELD_CALL: u32 = 16 << 10;
const UNHELD_MOST: usize = 64 << 10;

/// Cycles of the time-stamp counter in which no call can have waited for a disk, nor filled a
/// read-ahead window: at 1.6 to 5 GHz this is 2.5 to 8 microseconds. A cached 4 KiB read takes 0.2
/// to 0.4, but now and then a few, when a cache line or the processor is shared; a tighter bound
/// makes every sixth read of small cached files a look.
const FAST: u64 = 12_288;
/// Cycles allowed for calls on names and directories: they wait for what they miss, and creating or
/// deleting a name takes tens of thousands of cycles by itself.
const FAST_METADATA: u64 = 65_536;
/// Most disk waits attributed to one call on names or directories: fts_read(3) makes several system
/// calls at once.
const WAITS: u32 = 64;
/// Successive probes that found everything cached after which reads pass without one. A slow read
/// that did not wait (the machine was busy otherwise, or the disk is very fast) subtracts some. A
/// whole round between looks without a slow read adds some, up to a maximum.
const TRUSTED: u32 = 16;
const DOUBTED: u32 = 8;
const ROUND: u32 = 16;
const TRUSTED_MOST: u32 = 128;
/// Bytes copied per cycle at the slowest speed still likely to be a copy in memory.
const BYTES_PER_CYCLE: u64 = 4;

/// Per-thread state; all zeroes is a fresh one.
#[derive(Debug, Default)]
pub struct Thread {
    calls: Cell<u32>,
    bytes: Cell<u32>,
    written: Cell<u32>,
    /// The last look found that the disk had not been read.
    hit: Cell<bool>,
    cancelled: Cell<u64>,
    /// Set if the thread unlinked or truncated files since its cancelled writes were last read.
    removed: Cell<bool>,
    /// Bytes dirtied by the thread and not yet attributed to a file.
    dirtied: Cell<u64>,
    /// One more than the bytes the thread may still write unasked because it deletes its output;
    /// zero if it does not.
    ahead: Cell<u32>,
    /// Set if the last call took longer than one that finds everything cached.
    slow: Cell<bool>,
    /// Voluntary context switches when last read.
    waits: Cell<u64>,
    /// Involuntary context switches when last read.
    preempted: Cell<u64>,
    /// Voluntary context switches during the last call on names or directories.
    waited: Cell<u32>,
    /// Probes in a row that found all that was asked for.
    found: Cell<u32>,
    /// Metadata operations that passed unasked and are not yet counted.
    named: Cell<u32>,
    /// Amount that passed in a class without a limit since the last look.
    unheld: Cell<u32>,
    /// Start of the piece of work being timed; zero if none.
    begun: Cell<u64>,
    /// Written data that it has started on its way.
    pub(crate) backlog: Backlog,
    /// What became of the call that it makes.
    outcome: Cell<Outcome>,
    /// How long it has been held since the outcome was taken.
    held: Cell<u64>,
}

/// What became of a call, for a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Why it went on when it did.
    pub why: Why,
    /// Bytes that were reserved for it.
    pub predicted: u64,
    /// Bytes that were charged at its end.
    pub charged: u64,
}

impl Thread {
    //= discnice/5.3-ask-seldom
    /// Notes a call that moved `bytes` in `cycles`; returns true if the account must be read now.
    /// Time serves as a covert channel (Gray-Box Systems, 4.1), the account as the truth.
    #[inline(always)]
    pub fn is_due(&self, cycles: u64, bytes: isize) -> bool {
        let moved = bytes.max(0) as u64;
        let calls = self.calls.get() + 1;
        let total = self.bytes.get().saturating_add(moved as u32);
        self.calls.set(calls);
        self.bytes.set(total);
        let slow = cycles > FAST + moved / BYTES_PER_CYCLE;
        self.slow.set(slow);
        slow || calls >= CALLS || total >= BYTES
    }

    /// Notes a call on names or directories that took `cycles`; returns whether to look.
    #[inline(always)]
    pub fn is_due_by_metadata(&self, cycles: u64) -> bool {
        let calls = self.calls.get() + 1;
        self.calls.set(calls);
        cycles > FAST_METADATA || calls >= CALLS
    }

    /// Records the thread's voluntary context switches before a call on names or directories;
    /// `waits` is only asked if the call is likely to wait.
    pub fn waits_before(&self, waits: impl FnOnce() -> u64) {
        if self.missed() {
            self.waits.set(waits());
        }
    }

    /// Notes that the call took `cycles`; returns true if the account must be read. A predicted
    /// call is not judged by its time alone: creating a name takes as long as reading a block from
    /// a fast device, but does not wait.
    pub fn is_due_by_waits(&self, cycles: u64, waits: impl FnOnce() -> u64) -> bool {
        let calls = self.calls.get().saturating_add(1);
        self.calls.set(calls);
        let waited = if self.missed() || cycles > FAST { self.new_waits(waits()) } else { 0 };
        self.waited.set(waited);
        waited > 0 || calls >= CALLS
    }

    /// Notes whether a probe found all that was asked for.
    pub(crate) fn probed(&self, found_all: bool) {
        let found = self.found.get().saturating_add(1).min(TRUSTED_MOST);
        self.found.set(if found_all { found } else { 0 });
    }

    /// Returns true if reads may pass without a probe.
    #[inline(always)]
    #[must_use]
    pub fn finds_all(&self) -> bool {
        self.found.get() >= TRUSTED
    }

    /// Judges a slow read that passed without a probe; returns true if it was slow because the
    /// thread waited. A thread that lost the processor is slow for that reason alone.
    pub(crate) fn was_surprised(&self, (waits, preempted): (u64, u64)) -> bool {
        let waited = self.new_waits(waits) > 0;
        let excused = self.preempted.replace(preempted) != preempted;
        let found = self.found.get();
        self.found.set(match (waited, excused) {
            (true, _) => 0,
            (false, true) => found,
            (false, false) => found.saturating_sub(DOUBTED),
        });
        waited
    }

    /// Notes a round of reads that passed without a probe, none of them slow.
    pub(crate) fn passed_a_round(&self) {
        let found = self.found.get().saturating_add(ROUND);
        self.found.set(found.min(TRUSTED_MOST));
    }

    /// Makes later context switches of the thread count as new.
    pub(crate) fn switched_until_now(&self, (waits, preempted): (u64, u64)) {
        self.waits.set(waits);
        self.preempted.set(preempted);
    }

    /// Returns the waits since the last call. A forked child's count starts anew, which shows as a
    /// smaller one.
    fn new_waits(&self, waits: u64) -> u32 {
        let before = self.waits.replace(waits);
        let new = waits.checked_sub(before).unwrap_or(waits);
        u32::try_from(new).unwrap_or(u32::MAX).min(WAITS)
    }

    //= rate-windows/4-no-overhead
    /// Notes a call in a class without a limit, about to move at most `count` bytes. As it is never
    /// made to wait, it is only counted, and the account is read now and then. Returns false if
    /// that is due.
    #[inline(always)]
    pub fn passes(&self, count: usize) -> bool {
        let unheld = self.unheld.get().wrapping_add(UNHELD_CALL + count.min(UNHELD_MOST) as u32);
        self.unheld.set(unheld);
        unheld < UNHELD
    }

    /// Notes a metadata operation in a class without a limit, like [`Self::passes`]; also returns
    /// false if the operations should be counted.
    #[inline(always)]
    pub fn passes_named(&self) -> bool {
        self.names(NAMED_UNHELD) && self.passes(0)
    }

    /// Notes a call on names or directories under a limit of disk traffic; returns whether it may
    /// pass without being timed.
    #[inline(always)]
    pub fn passes_untimed(&self) -> bool {
        let calls = self.calls.get();
        if self.missed() || calls.is_multiple_of(TIMED) || calls >= CALLS {
            return false;
        }
        self.calls.set(calls + 1);
        true
    }

    /// Notes a metadata operation under a limit, like [`Self::passes_untimed`]; also returns false
    /// if the operations should be counted.
    #[inline(always)]
    pub fn passes_named_untimed(&self) -> bool {
        self.names(NAMED) && self.passes_untimed()
    }

    /// Notes a metadata operation unless they should be counted before.
    #[inline(always)]
    fn names(&self, most: u32) -> bool {
        let named = self.named.get() + 1;
        if named < most {
            self.named.set(named);
        }
        named < most
    }

    /// Notes that `bytes` were written into the cache, a cost that no clock shows; returns true if
    /// the account must be read.
    #[inline(always)]
    pub fn has_written(&self, bytes: isize) -> bool {
        self.written(bytes.max(0) as usize) >= WRITTEN
    }

    /// Notes that `bytes` were written to pages known to be dirty already; returns true if the
    /// account must be read.
    #[inline(always)]
    pub fn has_rewritten(&self, bytes: usize) -> bool {
        self.written(bytes) >= REWRITTEN
    }

    #[inline(always)]
    fn written(&self, bytes: usize) -> u32 {
        let total = self.written.get().saturating_add(bytes.min(REWRITTEN as usize) as u32);
        self.written.set(total);
        total
    }

    /// Notes a metadata operation that is not made to wait; returns true if the operations should
    /// be counted.
    #[inline(always)]
    pub fn has_named(&self) -> bool {
        let named = self.named.get().wrapping_add(1);
        self.named.set(named);
        named >= NAMED
    }

    /// Returns and clears the number of metadata operations since the last call.
    pub(crate) fn take_named(&self) -> u64 {
        self.named.take().into()
    }

    /// Notes why the call goes on.
    pub fn because(&self, why: Why) {
        self.outcome.set(Outcome { why, ..self.outcome.get() });
    }

    /// Adds what was reserved for the call and what it was charged.
    pub fn settled(&self, reserved: u64, moved: u64) {
        let Outcome { why, predicted, charged } = self.outcome.get();
        let predicted = predicted.saturating_add(reserved);
        self.outcome.set(Outcome { why, predicted, charged: charged.saturating_add(moved) });
    }

    /// Sums up how long the thread is held.
    #[must_use]
    pub const fn held(&self) -> &Cell<u64> {
        &self.held
    }

    /// Returns and clears what became of the calls since the last time, and how long they were held.
    pub fn take_outcome(&self) -> (Outcome, Nanos) {
        (self.outcome.take(), Nanos(self.held.take()))
    }

    /// Notes that the account was read; `missed` says that the disk had been read.
    pub(crate) fn looked(&self, missed: bool) {
        self.calls.set(0);
        self.bytes.set(0);
        self.written.set(0);
        self.unheld.set(0);
        self.hit.set(!missed);
    }

    /// A look found that so many bytes were dirtied: the next write is looked at, as no rewriting.
    pub(crate) fn has_dirtied(&self, bytes: u64) {
        let dirtied = self.dirtied.get().saturating_add(bytes);
        if dirtied > 0 {
            self.dirtied.set(dirtied);
            self.written.set(u32::MAX);
        }
    }

    /// Returns and clears the dirtied bytes, to attribute them to a file.
    pub(crate) fn take_dirtied(&self) -> u64 {
        let dirtied = self.dirtied.take();
        if dirtied > 0 {
            self.written.set(0);
        }
        dirtied
    }

    /// Enters how many bytes of the thread's writes the kernel has dropped so far; returns how many
    /// are new. A forked child's count begins anew, which shows as a smaller one.
    pub(crate) fn enter_cancelled(&self, cancelled: u64) -> u64 {
        let before = self.cancelled.replace(cancelled);
        cancelled.checked_sub(before).unwrap_or(cancelled)
    }

    /// Allows the thread to write so many bytes unasked.
    pub(crate) fn let_ahead(&self, bytes: u64) {
        self.ahead.set(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Returns true if a write of `bytes` may pass unasked because the thread deleted what it wrote
    /// so far; deducts it.
    #[inline(always)]
    pub fn runs_ahead(&self, bytes: usize) -> bool {
        let left = self.ahead.get();
        let passes = bytes < left as usize;
        if passes {
            self.ahead.set(left.wrapping_sub(bytes as u32));
        }
        passes
    }

    /// A piece of work begins that is to be timed.
    pub(crate) fn begin(&self, now: Nanos) {
        self.begun.set(now.0);
    }

    /// Ends the timed piece of work; returns its start, if that was seen.
    pub(crate) fn end(&self) -> Option<Nanos> {
        let begun = self.begun.take();
        (begun != 0).then_some(Nanos(begun))
    }

    /// Notes that the thread unlinks or truncates a file; its dirty pages may then never be
    /// written.
    #[inline(always)]
    pub fn removes(&self) {
        self.removed.set(true);
    }

    /// Returns true if the thread unlinked or truncated a file since the last call of this
    /// function.
    pub(crate) fn take_removed(&self) -> bool {
        self.removed.replace(false)
    }

    /// Returns true if the thread gave up the processor since the last look; `switches` counts
    /// voluntary and involuntary context switches.
    pub(crate) fn has_waited(&self, (waits, preempted): (u64, u64)) -> bool {
        self.preempted.set(preempted);
        self.new_waits(waits) > 0
    }

    /// Returns true if the thread had deleted its own output when that was last examined.
    pub(crate) fn deletes(&self) -> bool {
        self.ahead.get() > 0
    }

    /// Returns how often the last call on names or directories waited.
    #[must_use]
    pub fn waited(&self) -> u32 {
        self.waited.get()
    }

    /// Returns true if the last call took longer than one that finds everything cached.
    pub(crate) fn was_slow(&self) -> bool {
        self.slow.get()
    }

    /// Marks the next call as likely to read the disk.
    pub(crate) fn expect_miss(&self) {
        self.hit.set(false);
    }

    /// Returns true if the next call is likely to read the disk: as the last look found, or if
    /// there was none yet.
    #[inline]
    #[must_use]
    pub fn missed(&self) -> bool {
        !self.hit.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= discnice/5.3-ask-seldom
    #[test]
    fn slow_many_or_large_calls_are_looked_at() {
        let thread = Thread::default();
        assert!(!thread.is_due(900, 4096));
        assert!(thread.is_due(20_000, 4096), "slow");
        assert!(!thread.is_due(15_000, 65_536), "copying 64 KiB may take that long");
        thread.looked(false);
        assert_eq!(
            (0..2 * CALLS).take_while(|_| !thread.is_due(900, 1)).count(),
            CALLS as usize - 1
        );
        thread.looked(false);
        assert!(thread.is_due(0, 1 << 20), "large");
    }

    #[test]
    fn names_are_timed_until_they_are_found_cached_and_now_and_then_after() {
        let thread = Thread::default();
        assert!(!thread.passes_named_untimed(), "nothing has been looked at yet");
        thread.looked(false);
        let timed = (0..2 * CALLS)
            .filter(|_| {
                let passes = thread.passes_untimed();
                if !passes && thread.is_due_by_metadata(900) {
                    thread.looked(false);
                }
                !passes
            })
            .count();
        // Two more where a look fell between.
        let wanted = 2 * CALLS / TIMED;
        assert!((wanted..=wanted + 2).contains(&(timed as u32)), "{timed}");
        thread.looked(true);
        assert!(!thread.passes_untimed(), "the disk was read");
    }

    #[test]
    fn a_predicted_name_is_judged_by_its_waits() {
        let thread = Thread::default();
        thread.waits_before(|| 7);
        assert!(!thread.is_due_by_waits(1_000_000, || 7), "it took long, but did not wait");
        assert!(thread.is_due_by_waits(900, || 9));
        assert_eq!(thread.waited(), 2);
        thread.looked(false);
        thread.waits_before(|| unreachable!("all is cached"));
        assert!(!thread.is_due_by_waits(900, || unreachable!("nor did it take long")));
        assert!(thread.is_due_by_waits(20_000, || 10));
        assert_eq!(thread.waited(), 1);
        assert!(thread.is_due_by_waits(20_000, || 1), "a forked child begins anew");
        assert_eq!(thread.waited(), 1);
    }

    #[test]
    fn probes_end_while_all_is_found_and_begin_again_after_a_surprise() {
        let thread = Thread::default();
        let find = |count| (0..count).for_each(|_| thread.probed(true));
        find(TRUSTED - 1);
        assert!(!thread.finds_all());
        thread.probed(false);
        find(TRUSTED);
        assert!(thread.finds_all());
        thread.switched_until_now((5, 5));
        assert!(!thread.was_surprised((5, 6)), "it lost the processor");
        assert!(thread.finds_all());
        assert!(!thread.was_surprised((5, 6)), "nobody knows why");
        assert!(!thread.finds_all());
        find(TRUSTED);
        assert!(thread.was_surprised((6, 6)), "it waited");
        find(TRUSTED - 1);
        assert!(!thread.finds_all());
        (0..100).for_each(|_| thread.passed_a_round());
        let surprises = (0..100).take_while(|_| {
            let _ = thread.was_surprised((6, 6));
            thread.finds_all()
        });
        assert_eq!(surprises.count() as u32, (TRUSTED_MOST - TRUSTED) / DOUBTED);
    }

    //= rate-windows/4-no-overhead
    #[test]
    fn what_passes_without_a_limit_is_due_after_calls_or_bytes() {
        let thread = Thread::default();
        assert_eq!((0..5000).take_while(|_| thread.passes(0)).count(), 1023);
        thread.looked(false);
        assert_eq!((0..5000).take_while(|_| thread.passes(1 << 30)).count(), 204);
        thread.looked(false);
        assert_eq!((0..5000).take_while(|_| thread.passes_named()).count(), 1023);
        assert_eq!(thread.take_named(), 1023);
    }
}
