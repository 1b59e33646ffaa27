//! Writing: charged when a page is dirtied, written back steadily.
//!
//! Left alone the kernel collects dirty pages for seconds and then writes them at full speed,
//! which no throttle of the process can prevent any more. So write-back of what a descriptor
//! dirtied is started in small portions. Only newly dirtied bytes count: a program that rewrites
//! the same pages keeps doing so for free.

use discnice_estimator::CallKind;
use discnice_estimator::blocks::Pages;
use discnice_estimator::file_systems::TINY;
use discnice_ledger::trace::Why;
use discnice_ledger::{Class, Direction};
use discnice_units::{Bytes, Moment, Nanos};

use crate::host::Host;
use crate::{File, Forecast, Regulator, Thread, Ticket};

/// How much of the rate is written back at once.
const PORTION_TIME: Nanos = Nanos::from_millis(100);
/// Smaller portions cost seeks.
const PORTION_MIN: u64 = 128 << 10;
/// Larger ones cost the caller too long (166 us for each MiB).
const PORTION_MAX: u64 = 2 << 20;
/// A small file is left to the kernel when it is closed, because it may be deleted soon, until the
/// class has left so much without deleting it: what the kernel writes at once, some day, stays below an
/// eighth of a second's worth.
const LEFT_TIME: Nanos = Nanos::from_millis(100);
/// Least that is left, whatever the rate.
const LEFT_MIN: u64 = 32 << 10;
/// Most that is left, whatever the rate.
const LEFT_MAX: u64 = 4 << 20;

/// What is left to be done with a file that is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// Its write-back is started.
    writes: bool,
    /// It is waited for, where write-back cannot merely be started.
    waits: bool,
}

impl Closing {
    /// Returns true if nothing is to be done with the file itself.
    #[must_use]
    pub fn is_done(self, file: &File) -> bool {
        !self.writes && !file.is_made() && !file.is_foreign_to_cache()
    }
}

//= discnice/4-delayed-write
//= discnice/5.3-after-flush
/// How many dirtied bytes are written back at once.
#[must_use]
pub fn portion(class: &Class) -> u64 {
    let rate = class.rule(Direction::Write).rate;
    rate.units_in(PORTION_TIME).clamp(PORTION_MIN, PORTION_MAX)
}

impl<H: Host> Regulator<'_, H> {
    /// Admits a write of `count` bytes, at the descriptor's offset or at `at`.
    pub fn admit_write(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        at: Option<u64>,
        count: u64,
    ) -> Ticket {
        if self.let_run_ahead(thread, file, count) {
            // Nor is it worth asking what the descriptor is.
            thread.outcomes.because(Why::Deletes);
            return Ticket::FREE;
        }
        if !self.is_regulated(fd, file) {
            thread.outcomes.because(if file.is_other() { Why::Elsewhere } else { Why::Unlimited });
            return Ticket::FREE;
        }
        if file.is_predicted() {
            return self.admit_predicted_write(thread, fd, file, at, count);
        }
        if file.rewrites() {
            thread.outcomes.because(Why::Dirty);
            return Ticket::FREE;
        }
        thread.outcomes.because(Why::Reserved);
        self.reserve_write(thread, count);
        Ticket { write: count, ..Ticket::OPEN }
    }

    /// Lets a thread that deletes its own output write a few slices unasked, since asking what was
    /// dropped is expensive.
    fn let_run_ahead(&self, thread: &Thread, file: &File, count: u64) -> bool {
        let asks = self.class.predicts() || file.is_predicted() || file.rewrites();
        if asks || !thread.deletions.are_known() || !self.class.is_limited() {
            return false;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let deletions = &thread.deletions;
        if !deletions.cover(count) {
            self.credit_cancelled(thread);
        }
        let covered = deletions.cover(count);
        if covered {
            deletions.deduct(count);
        }
        covered
    }

    fn admit_predicted_write(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        at: Option<u64>,
        count: u64,
    ) -> Ticket {
        let forecast = self.forecast_write(fd, file, at, count);
        let costs = forecast.read | forecast.write > 0;
        thread.outcomes.because(if costs { Why::Reserved } else { Why::Dirty });
        if forecast.read > 0 {
            self.reserve_and_wait(Direction::Read, forecast.read);
        }
        if forecast.write > 0 {
            self.reserve_write(thread, forecast.write);
        }
        Ticket { look: forecast.write > 0, ..Ticket::of(forecast) }
    }

    pub(crate) fn reserve_write(&self, thread: &Thread, count: u64) {
        if !self.class.predicts() && self.owes(Direction::Write) {
            // Perhaps what is owed was never written: then nothing is owed.
            self.credit_cancelled(thread);
        }
        self.reserve_and_wait(Direction::Write, count);
    }

    /// The longest piece in which a write should be made, in bytes.
    #[must_use]
    pub fn write_piece(&self) -> u64 {
        if self.class.is_free() {
            return u64::MAX;
        }
        self.class.rule(Direction::Write).slice().min(self.slice(Direction::Write))
    }

    /// Completes a write that returned `result`, of bytes ending at the descriptor's offset or
    /// at `at + result`.
    pub fn complete_write(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        ticket: Ticket,
        at: Option<u64>,
        result: isize,
    ) {
        self.classify(fd, file);
        let unasked = ticket.forecast.is_none() && file.is_predicted() && self.class.is_limited();
        let nothing = unasked.then(|| Forecast::nothing(file, CallKind::Write));
        let forecast = ticket.forecast.map(|made| self.correct_write(file, made, at, result));
        let ticket = Ticket { forecast: forecast.or(nothing), ..ticket };
        let _ = self.settle(thread, ticket);
        // Also what was found before: in between it read, or the waits of others were looked at.
        let written = thread.writes.take_dirtied();
        if written > 0 {
            self.note_disk(fd, file, written);
        }
        if self.class.is_free() || !file.is_regular() {
            return;
        }
        file.set_rewrites(written == 0 && result > 0);
        if written > 0 {
            self.note_dirtied(thread, (fd, file), written, at, result.max(0) as u64);
        }
    }

    /// Returns true if dirty pages are written back steadily. For a class without a limit on
    /// writes, now or while others are busy, the kernel may write at its own pace.
    fn writes_steadily(&self) -> bool {
        let held = !self.class.rule(Direction::Write).rate.is_unlimited();
        !self.class.is_free() && (held || self.class.yields())
    }

    /// Counts dirtied bytes towards the next portion.
    pub(crate) fn note_dirtied(
        &self,
        thread: &Thread,
        (fd, file): (i32, &File),
        written: u64,
        at: Option<u64>,
        moved: u64,
    ) {
        if !self.writes_steadily() {
            return;
        }
        if file.add_dirtied(written, at, moved) >= portion(self.class) {
            self.write_back(thread, fd, file);
            self.write_through(fd, file);
        }
    }

    fn write_back(&self, thread: &Thread, fd: i32, file: &File) {
        let dirtied = file.dirtied();
        let Some((low, length)) = file.take_dirtied(|| self.host.position(fd)) else { return };
        if length > 2 * portion(self.class) && self.host.is_between_calls() {
            self.write_back_in_step(thread, fd, (low, length));
        } else {
            self.write_back_timed(thread, fd, (low, length), dirtied);
        }
        if let Some((_, key)) = file.identity() {
            let regions = self.class.estimation().regions();
            if length > 0 {
                regions.written_back(key, Pages::touched(low, length));
            } else {
                regions.flushed(key);
            }
            file.forget_dirty();
        }
    }

    /// Writes back what one call has dirtied that could not be made in pieces: as many as it would have been,
    /// so that the last one is started when the class has paid for nearly all.
    fn write_back_in_step(&self, thread: &Thread, fd: i32, (low, length): (u64, u64)) {
        let rate = self.class.rule(Direction::Write).rate;
        let (mut paid, mut done) = (Moment::NEVER, 0);
        while done < length {
            let piece = portion(self.class).min(length - done);
            self.write_back_timed(thread, fd, (low + done, piece), piece);
            done += piece;
            // The last piece need not wait for its turn while others reserve, but the limit may be
            // raised.
            paid = paid.min(self.frontier(Direction::Write));
            self.wait_until_paid(paid.minus(rate.time_for(length - done)));
        }
    }

    /// Writes back a file where write-back cannot merely be started. Not for small files: waiting
    /// for each costs the journal more than their data.
    fn write_through(&self, fd: i32, file: &File) {
        if let Some(error) = self.host.write_through(fd) {
            file.owe_error(error);
        }
    }

    /// The program is about to close the descriptor.
    pub fn before_close(&self, thread: &Thread, fd: i32, file: &File) {
        let closing = self.close(thread, file);
        self.finish(thread, fd, file, closing);
    }

    /// Settles what a file that is closed has cost; returns what is left to be done with it.
    pub fn close(&self, thread: &Thread, file: &File) -> Closing {
        if file.rewrites() && !self.class.is_free() {
            // Some of what passed as rewriting did not rewrite.
            let _ = self.settle(thread, Ticket::FREE);
            let written = thread.writes.take_dirtied();
            if written > 0 {
                file.add_dirtied(written, None, written);
            }
        }
        let dirtied = file.dirtied();
        if file.is_emptied() {
            // File systems do so by themselves, for programs that replace a file without fsync.
            self.synced(file);
        }
        let writes = dirtied > 0
            && self.writes_steadily()
            && (dirtied >= PORTION_MIN || self.leaves_too_much(thread, dirtied));
        Closing { writes, waits: writes && dirtied >= PORTION_MIN }
    }

    /// Does what is left to be done with a file that is closed, by any descriptor of it.
    pub fn finish(&self, thread: &Thread, fd: i32, file: &File, closing: Closing) {
        self.leave_cache(fd, file);
        if file.is_made() {
            self.count_if_tiny(fd);
        }
        if closing.writes {
            self.write_back(thread, fd, file);
        }
        if closing.waits {
            self.write_through(fd, file);
        }
    }

    /// A file that was made has the size now that it will be written with.
    fn count_if_tiny(&self, fd: i32) {
        let Some(status) = self.host.status(fd).filter(|status| status.regular) else { return };
        let slot = self.class.estimation().file_systems().slot(status.device);
        if (1..=TINY).contains(&status.size)
            && let Some(fs) = self.file_system(slot)
        {
            fs.made_tiny();
        }
    }

    /// Returns true if the class leaves too much to the kernel with a file that is closed; then the
    /// file does not count as left.
    fn leaves_too_much(&self, thread: &Thread, bytes: u64) -> bool {
        let rate = self.class.rule(Direction::Write).rate;
        let most = Bytes::new(rate.units_in(LEFT_TIME).clamp(LEFT_MIN, LEFT_MAX));
        let bytes = Bytes::new(bytes);
        let mut left = self.class.leave_dirty(bytes);
        if left >= most && !self.class.predicts() {
            // Perhaps much of it was deleted, which is expensive to ask.
            self.credit_cancelled(thread);
            left = self.class.leave_dirty(Bytes::ZERO);
        }
        let too_much = left >= most;
        if too_much {
            self.class.take_back_dirty(bytes);
        }
        too_much
    }
}
