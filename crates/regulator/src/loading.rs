//! Bringing a program's file into the page cache before it is executed or mapped.
//!
//! A page fault reads a whole read-ahead window of the device around it (mm/filemap.c,
//! `do_sync_mmap_readahead`), 8 MiB on some machines, and comes unannounced: a program that is
//! loaded cold reads several seconds' worth of a low limit at once, before it runs a line of ours.

use core::ops::Range;

use discnice_ledger::Direction;
use discnice_units::Rate;

use crate::host::Host;
use crate::{Regulator, Thread, Ticket};

/// Limit from which on what a program's start reads is no burst: programs and their libraries are
/// mostly smaller than what may pass in a second, and so is a window of read-ahead.
const NO_BURST: Rate = Rate::per_second(32 << 20);

/// First slice of a file: most of what is executed is small or cached.
const FIRST_SLICE: u64 = 32 << 10;

impl<H: Host> Regulator<'_, H> {
    /// Returns true if page faults are a burst under the class's limit.
    #[inline]
    #[must_use]
    pub fn faults_burst(&self) -> bool {
        self.class.rule(Direction::Read).rate < NO_BURST
    }

    /// Reads a range of the file below `fd` into the page cache, paced.
    ///
    /// A slice is reserved and waited for only if the one before it read the disk (for the first
    /// slice, `missed` says so). Cached data is thus never delayed. Returns true if the last slice
    /// read the disk.
    pub fn bring_in(&self, thread: &Thread, fd: i32, range: Range<u64>, mut missed: bool) -> bool {
        let longest = self.class.rule(Direction::Read).slice();
        let (Range { start: mut from, end }, mut length) = (range, FIRST_SLICE);
        while from < end && self.faults_burst() {
            length = length.min(longest).min(end - from);
            let reserved = if missed { length } else { 0 };
            let forecast = self.forecast_bringing_in(fd, from, length);
            if missed {
                self.reserve_and_wait(Direction::Read, length);
            }
            // What other threads read meanwhile tells nothing about this file.
            let before = self.host.read_by_thread();
            let ticket = Ticket { read: reserved, forecast, ..Ticket::FREE };
            let _ = self.read_ahead(thread, fd, (from, length), ticket);
            missed = self.host.read_by_thread() != before;
            from += length;
            length = length.saturating_mul(2);
        }
        missed
    }
}
