//! Copying inside the kernel: copy_file_range(2), sendfile(2), splice(2).

use discnice_estimator::CallKind;
use discnice_estimator::blocks::{PAGE, Pages};
use discnice_ledger::Direction;
use discnice_ledger::trace::Why;
use discnice_units::{Moment, Nanos};

use crate::host::Host;
use crate::read::Ask;
use crate::{File, Forecast, Regulator, Thread, Ticket};

/// Times of files are those of the last clock tick: 10 ms at 100 Hz.
const TICK: Nanos = Nanos::from_millis(10);
/// What a pipe holds unless it was made larger; what more comes is charged afterwards. pipe(7)
const PIPE: u64 = 64 << 10;

impl<H: Host> Regulator<'_, H> {
    /// Admits copying `count` bytes from `from`, at its own offset if `in_order` and else at one
    /// that is not known, to `to`. Reflinks and holes cost nothing, which only the account knows
    /// afterwards.
    pub fn admit_copy(
        &self,
        thread: &Thread,
        from: (i32, &File),
        in_order: bool,
        to: (i32, &File),
        count: u64,
    ) -> Ticket {
        let source = self.is_regulated(from.0, from.1) && from.1.is_regular();
        let target = self.is_regulated(to.0, to.1) && to.1.is_regular();
        let mut forecast = Forecast::nothing(if target { to.1 } else { from.1 }, CallKind::Copy);
        let mut length = if target { self.most_of(from.0, in_order, count) } else { count };
        thread.outcomes.because(if source || target { Why::Reserved } else { Why::Unlimited });
        if source {
            (forecast.read, length) = self.admit_source(thread, from, in_order, count);
        }
        if target {
            forecast.write = length;
            if to.1.is_predicted() {
                let write = self.forecast_write(to.0, to.1, None, length);
                (forecast.read, forecast.write) = (forecast.read + write.read, write.write);
            }
            self.reserve_write(thread, forecast.write);
        }
        Ticket::of(forecast)
    }

    /// Returns how much a copy of `count` bytes can find: no more than is in the file, or in a pipe. Programs ask for all that
    /// may come, and what one of them reserves the others wait for.
    fn most_of(&self, from: i32, in_order: bool, count: u64) -> u64 {
        match self.host.status(from) {
            Some(status) if status.regular => {
                let begin = if in_order { self.host.position(from) } else { None };
                count.min(status.size.saturating_sub(begin.unwrap_or(0)))
            }
            _ => count.min(PIPE),
        }
    }

    /// Reserves what will be read of `count` bytes and starts reading it, if it is known where, a slice at a
    /// time; returns how much is still to be read, and how much can be copied.
    fn admit_source(
        &self,
        thread: &Thread,
        from: (i32, &File),
        in_order: bool,
        count: u64,
    ) -> (u64, u64) {
        self.shape(from.0, from.1);
        let size = self.host.status(from.0).map_or(0, |status| status.size);
        let begin = if in_order { self.host.position(from.0) } else { None };
        let length = count.min(size.saturating_sub(begin.unwrap_or(0)));
        let Some(begin) = begin else {
            self.reserve_and_wait(Direction::Read, length);
            return (length, length);
        };
        let slice = self.slice(Direction::Read);
        if length > slice && self.reads_ahead_for(from.0, from.1) {
            let ask = Ask { fd: from.0, count: length, at: Some(begin) };
            let _ = self.admit_large(thread, from.1, ask, slice);
            return (0, length);
        }
        let forecast = self.forecast_read(from.0, from.1, begin, length);
        if forecast.read > 0 {
            self.reserve_and_wait(Direction::Read, forecast.read);
            // Settled at once: before the copy another wait may follow.
            let _ = self.read_ahead(thread, from.0, (begin, length), Ticket::of(forecast));
        }
        (0, length)
    }

    /// The longest piece in which a copy should be made, in bytes.
    #[must_use]
    pub fn copy_piece(&self) -> u64 {
        self.write_piece().min(self.slice(Direction::Read))
    }

    /// Completes a copy that returned `result`.
    pub fn complete_copy(
        &self,
        thread: &Thread,
        to: (i32, &File),
        mut ticket: Ticket,
        result: isize,
    ) {
        if to.1.is_predicted() && result > 0 && self.is_shared_copy(to, result as u64) {
            if let Some(forecast) = &mut ticket.forecast {
                forecast.write = 0;
            }
            self.synced(to.1);
        }
        to.1.set_position(None);
        let _ = self.settle(thread, ticket);
        let written = thread.writes.take_dirtied();
        if written > 0 {
            self.note_disk(to.0, to.1, written);
        }
        if !self.class.is_free() && written > 0 && result > 0 && to.1.is_regular() {
            self.note_dirtied(thread, to, written, None, result as u64);
        }
    }

    /// Notes a file opened for writing at `begun`. On overlayfs this copies a file of the lower
    /// layer, and the copy is then younger than the call. How much of the original was cached can
    /// no longer be determined.
    pub fn opened_to_write(&self, thread: &Thread, fd: i32, begun: Moment) {
        let took = self.host.now().since(begun).plus(TICK);
        if self.host.age_of_copy(fd).is_none_or(|age| age > took) {
            return;
        }
        let Some(status) = self.host.status(fd).filter(|status| status.regular) else { return };
        let file = File::new();
        file.classify(&status);
        self.identify(fd, &file, status);
        let bytes = status.allocated.min(status.size.next_multiple_of(PAGE));
        let mut copied = Forecast::nothing(&file, CallKind::Copy);
        (copied.read, copied.write) = (bytes, bytes);
        let _ = self.settle(thread, Ticket { forecast: Some(copied), ..Ticket::FREE });
    }

    /// Returns true if the file system made both files share the data (reflink) instead of copying
    /// it: then nothing of the new range is cached.
    fn is_shared_copy(&self, to: (i32, &File), moved: u64) -> bool {
        let Some(end) = self.host.position(to.0) else { return false };
        let pages = Pages::touched(end.saturating_sub(moved), moved);
        let missing = to.1.detector.count_missing(self.host, to.0, pages);
        missing == pages.count()
            && to.1.detector.is_exact()
            // A stacked file system counts none either.
            && self.host.is_shared(to.0, pages.offset()) != Some(false)
    }
}
