//! Reading: bounded read-ahead of our own.
//!
//! The kernel's read-ahead makes one small read cost megabytes, at unpredictable moments. Under a
//! limit it is switched off for the descriptor (`shaping.rs`), and for a sequential reader slices are read ahead that are reserved and paid for
//! beforehand. The program's own call then finds its data in the cache.

use discnice_ledger::Direction;
use discnice_ledger::trace::Why;

use discnice_estimator::CallKind;
use discnice_estimator::blocks::Pages;

use crate::host::Host;
use crate::{File, Forecast, Regulator, Thread, Ticket};

/// First slice of a stream, so that a reader of a file's beginning costs little.
const FIRST_SLICE: u64 = 32 << 10;
/// First slice of a stream while the class gives way: larger, for fewer seeks.
const FIRST_SLICE_YIELDING: u64 = 128 << 10;
/// Slices in a row that cost nothing and so show that the file is cached.
const DRY: u16 = 2;
/// If a call cost this much more than it asked for, the kernel has read ahead; its smallest window
/// in use is 128 KiB.
const RUN_AHEAD: u64 = 96 << 10;
/// Furthest that the kernel reads ahead: two windows of the largest size in use.
const RUN_AHEAD_MOST: u64 = 16 << 20;
/// A longer read is worth a probe, which is cheaper than copying what it reads.
const UNPROBED: u64 = 128 << 10;
/// The page size of the cache.
const PAGE: u64 = 4096;

/// A read that a program asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) fd: i32,
    /// Bytes.
    pub(crate) count: u64,
    /// Offset, unless it is the descriptor's own.
    pub(crate) at: Option<u64>,
}

impl<H: Host> Regulator<'_, H> {
    /// Admits a read of `count` bytes, at the descriptor's offset or at `at`.
    pub fn admit_read(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        count: usize,
        at: Option<u64>,
    ) -> Ticket {
        let mut ask = Ask { fd, count: count as u64, at };
        if !self.is_regulated(fd, file) {
            return self.admit_free(thread, file, ask);
        }
        if file.is_predicted() && at.is_none() {
            // Others may share the offset: what we followed is checked whenever it matters.
            ask.at = self.host.position(fd);
            file.set_position(ask.at);
        }
        if file.has_run_ahead() {
            file.expect_unshaped();
            self.stop_running_ahead(file, ask);
        }
        self.shape(fd, file);
        if file.is_stream()
            && let Some(ticket) = self.admit_stream(thread, file, ask)
        {
            return ticket;
        }
        let slice = self.slice(Direction::Read);
        if ask.count > slice && self.reads_ahead_for(fd, file) {
            return self.admit_large(thread, file, ask, slice);
        }
        self.admit_plain(thread, file, ask)
    }

    fn first_slice(&self) -> u64 {
        if self.class.yields() { FIRST_SLICE_YIELDING } else { FIRST_SLICE }
    }

    //= discnice/5.4-reset
    /// Returns true if we may read ahead on this descriptor at all.
    pub(crate) fn reads_ahead_for(&self, fd: i32, file: &File) -> bool {
        let may = file.is_regular() && !file.wants_random() && self.modules().read_size;
        // What is read past the cache is not to be read into it as well.
        may && !self.write_mode(fd, file).direct
    }

    /// Completes a read that returned `result`.
    pub fn complete_read(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        ticket: Ticket,
        at: Option<u64>,
        result: isize,
    ) {
        if file.is_foreign_to_cache()
            && let Ok(moved) = u64::try_from(result)
            && let Some(end) =
                at.map(|at| at.saturating_add(moved)).or_else(|| self.host.position(fd))
        {
            self.drop_behind(fd, file, end);
        }
        let ticket = self.explain(thread, fd, file, ticket, at, result);
        let seemed_cached = ticket.forecast.is_some_and(|forecast| forecast.read == 0);
        let (read, _) = self.settle(thread, ticket);
        if read > 0 {
            self.note_disk(fd, file, read);
        }
        if read == 0 || result <= 0 || !self.class.is_limited() || !file.is_regular() {
            return;
        }
        if file.is_stream() || !self.reads_ahead_for(fd, file) {
            return;
        }
        let moved = result as u64;
        // A read as large as the kernel's window always finds its data on its way.
        let own = if seemed_cached { 0 } else { moved };
        file.set_run_ahead(file.is_shaped() && read > own.saturating_add(RUN_AHEAD));
        let Some(end) = at.map(|at| at + moved).or_else(|| self.host.position(fd)) else { return };
        let begin = end.saturating_sub(moved);
        if begin == 0 || begin == file.next() {
            file.start_stream(end.next_multiple_of(PAGE), self.first_slice().max(2 * moved));
            file.set_next(end);
        } else {
            file.set_next(self.follow_steps(thread, fd, file, end, moved));
        }
    }

    /// Adds the prediction for a read that passed without one.
    fn explain(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        ticket: Ticket,
        at: Option<u64>,
        result: isize,
    ) -> Ticket {
        let known = file.is_classified();
        self.classify(fd, file);
        if ticket.forecast.is_some() || !file.is_predicted() || !self.class.is_limited() {
            return ticket;
        }
        if known {
            let unprobed = file.passes_unprobed();
            // A thread that did not wait has read nothing and only lost the processor, so what is
            // known of the cache is true.
            let waited = || unprobed || thread.switches.note_and_compare(self.host.switches());
            if thread.countdown.was_slow() && waited() {
                // It was not as cached as it was known to be.
                file.detector.doubt();
            }
            if unprobed && self.surprises(thread) {
                return self.charge_late(fd, file, ticket, at, result);
            }
            return Ticket { forecast: Some(Forecast::nothing(file, CallKind::Read)), ..ticket };
        }
        thread.cache.expect_miss();
        // Slowness alone proves nothing: the thread may have lost the processor, or read a small
        // file never mapped before.
        if thread.countdown.was_slow() && thread.switches.note_and_compare(self.host.switches()) {
            return self.charge_late(fd, file, ticket, at, result);
        }
        Ticket { forecast: Some(Forecast::nothing(file, CallKind::Read)), ..ticket }
    }

    /// Returns true if the last read, which passed without a probe, must have waited for the disk.
    fn surprises(&self, thread: &Thread) -> bool {
        if thread.countdown.was_slow() {
            return thread.judge_slow(self.host.switches());
        }
        thread.cache.note_round();
        false
    }

    /// All that a read asked for which is already done.
    fn charge_late(
        &self,
        fd: i32,
        file: &File,
        ticket: Ticket,
        at: Option<u64>,
        result: isize,
    ) -> Ticket {
        let moved = result.max(0) as u64;
        let end = at.map(|at| at + moved).or_else(|| self.host.position(fd)).unwrap_or(moved);
        Ticket { forecast: Some(self.forecast_late(file, end, moved)), ..ticket }
    }

    /// A file that the kernel was reading ahead when a limit began: each of its windows holds a mark
    /// that makes it read the next one, whatever advice it was given since. So what it has read
    /// ahead is dropped, once it is paid for.
    fn stop_running_ahead(&self, file: &File, ask: Ask) {
        file.set_run_ahead(false);
        self.reserve_and_wait(Direction::Read, 0);
        if let Some(at) = ask.at.or_else(|| self.host.position(ask.fd)) {
            self.host.drop_cached(ask.fd, at, RUN_AHEAD_MOST);
        }
    }

    /// A read that nothing holds now. A long one of a class that gives way is read in slices all the
    /// same: it may have to give way in the middle.
    fn admit_free(&self, thread: &Thread, file: &File, ask: Ask) -> Ticket {
        thread.outcomes.because(if file.is_other() { Why::Elsewhere } else { Why::Unlimited });
        let slice = self.slice(Direction::Read);
        if !self.class.yields() || ask.count <= slice || self.class.is_limited() {
            return Ticket::FREE;
        }
        self.classify(ask.fd, file);
        if !file.is_regular() || file.wants_random() {
            return Ticket::FREE;
        }
        let ticket = self.admit_large(thread, file, ask, slice);
        file.end_stream();
        ticket
    }

    /// A read that is not part of a stream: it waits only if the class owes time, or if it is
    /// likely to miss the cache as the thread's last one did.
    fn admit_plain(&self, thread: &Thread, file: &File, ask: Ask) -> Ticket {
        thread.outcomes.because(Why::NothingOwed);
        if !file.is_predicted() && !self.owes(Direction::Read) && !thread.cache.missed() {
            return Ticket::OPEN;
        }
        let Some(at) = ask.at.or_else(|| self.host.position(ask.fd)) else { return Ticket::OPEN };
        if self.passes_unprobed(thread, file, ask, at) {
            thread.outcomes.because(Why::Cached);
            return Ticket::FREE;
        }
        if !file.is_predicted() && file.steps_to(at.saturating_add(ask.count)) {
            // It was read with others, and is paid for.
            thread.outcomes.because(Why::PaidAhead);
            return Ticket::OPEN;
        }
        let forecast = self.forecast_read(ask.fd, file, at, ask.count);
        if file.detector.is_probed() {
            thread.cache.note_probe(forecast.read == 0);
        }
        thread.outcomes.because(if forecast.read > 0 { Why::Reserved } else { Why::Cached });
        if forecast.read > 0 {
            self.reserve_and_wait(Direction::Read, forecast.read);
            self.begin_piece(thread);
        }
        Ticket::of(forecast)
    }

    /// Returns true if a read passes without a probe, of a file that can only be probed.
    fn passes_unprobed(&self, thread: &Thread, file: &File, ask: Ask, at: u64) -> bool {
        let asked = Pages::touched(at, ask.count);
        file.is_predicted()
            && thread.cache.finds_all()
            && ask.count <= UNPROBED
            && asked.count() > 0
            && self.modules().cache_detector
            && file.detector.must_probe(self.host, ask.fd, asked)
            && file.passes_unprobed()
    }

    /// A read longer than a slice: brought into the cache slice by slice first, so that the one
    /// real call, which is never split, costs nothing.
    pub(crate) fn admit_large(&self, thread: &Thread, file: &File, ask: Ask, slice: u64) -> Ticket {
        let Some(at) = ask.at.or_else(|| self.host.position(ask.fd)) else { return Ticket::OPEN };
        let forecast = self.forecast_read(ask.fd, file, at, ask.count);
        thread.outcomes.because(if forecast.read > 0 { Why::Slices } else { Why::Cached });
        if forecast.read == 0 {
            return Ticket::of(forecast);
        }
        file.start_stream(at / PAGE * PAGE, slice);
        self.extend(thread, file, ask.fd, at.saturating_add(ask.count), true);
        Ticket::OPEN
    }

    /// A read of a stream; `None` if it is none, and the stream has ended.
    fn admit_stream(&self, thread: &Thread, file: &File, ask: Ask) -> Option<Ticket> {
        let Some(at) = ask.at.or_else(|| self.host.position(ask.fd)) else {
            return Some(Ticket::OPEN);
        };
        let end = at.saturating_add(ask.count);
        let paid = file.paid();
        let reach = self.slice(Direction::Read).max(ask.count).saturating_mul(2);
        if at > paid || at.saturating_add(reach) < paid {
            // It jumped: a reader in order never is ahead of what we read for it.
            file.end_stream();
            return None;
        }
        thread.outcomes.because(Why::PaidAhead);
        if paid >= end.saturating_add(file.ramp() / 2) {
            return Some(Ticket::FREE);
        }
        thread.outcomes.because(Why::Slices);
        self.extend(thread, file, ask.fd, end, false);
        if file.is_predicted() {
            // Up to where the next slice is due.
            file.detector.assume(at, file.paid().saturating_sub(file.ramp() / 2));
        }
        Some(Ticket { look: file.paid() < end, ..Ticket::FREE })
    }

    /// Reads ahead slice by slice until `end` and half a slice are paid for, and ends the stream if the file turns out to
    /// be cached; or, `to_the_end`, every page until there and none behind it.
    fn extend(&self, thread: &Thread, file: &File, fd: i32, end: u64, to_the_end: bool) {
        let size = self.host.status(fd).map_or(0, |status| status.size);
        let longest = self.slice(Direction::Read).max(PAGE);
        // Where this read is: other threads that read by the same descriptor move the stream, or end it.
        let (mut paid, mut ramp) = (file.paid(), file.ramp().max(PAGE));
        let most = if to_the_end { size.min(end) } else { size };
        let behind = |ramp| if to_the_end { 0 } else { ramp / 2 };
        while paid < most && paid < end.saturating_add(behind(ramp)) && !self.host.is_abandoned() {
            let length = ramp.min(longest).min(most.next_multiple_of(PAGE) - paid);
            let cost = self.extend_by(thread, file, fd, paid, length);
            (paid, ramp) = (paid + length, (ramp * 2).min(longest));
            file.set_paid(paid);
            file.set_ramp(ramp);
            if file.note_slice(cost) >= DRY && !to_the_end {
                file.end_stream();
                return;
            }
        }
    }

    /// Reads one slice ahead; returns what it cost.
    fn extend_by(&self, thread: &Thread, file: &File, fd: i32, from: u64, length: u64) -> u64 {
        let forecast = self.forecast_slice(fd, file, from, length);
        if forecast.read == 0 {
            return 0;
        }
        self.reserve_and_wait(Direction::Read, forecast.read);
        if self.host.is_abandoned() {
            self.settle_as(Ticket::of(forecast), 0, 0);
            return 0;
        }
        self.read_ahead(thread, fd, (from, length), Ticket::of(forecast)).0
    }
}
