//! Reading in steps: a page, or a few, and then some that are passed over.
//!
//! A database with rows longer than a page reads like this, and so does DiscNice's benchmark
//! "Stride" (6.1). The kernel's own read-ahead would bring in what lies between as well; without it
//! each step waits for the disk alone. So once two steps were equally long, the next ones are read
//! together, and paid for before: few at first, because pages that are never read are wasted, and
//! twice as many each time that all were wanted.

use discnice_ledger::Direction;
use discnice_units::Nanos;

use crate::host::Host;
use crate::{File, Regulator, Thread, Ticket};

/// Share of the rate that is read together at first: a few times what a disk takes for one read
/// without a seek.
const FIRST: Nanos = Nanos::from_millis(1);
/// Largest share: more would hide that the disk was waited for.
const MOST: Nanos = Nanos::from_millis(10);
/// A longer step, in bytes, is a jump.
const LONGEST: u64 = 1 << 20;
/// The page size of the cache.
const PAGE: u64 = 4096;

impl<H: Host> Regulator<'_, H> {
    /// Follows a read of `moved` bytes that ended at `end` and missed the cache; returns where the
    /// last read ends that will find its bytes.
    pub(crate) fn follow_steps(
        &self,
        thread: &Thread,
        fd: i32,
        file: &File,
        end: u64,
        moved: u64,
    ) -> u64 {
        let step = end.saturating_sub(file.next());
        let repeats = file.repeats_step(u32::try_from(step).unwrap_or(0));
        if !repeats || step <= moved || step > LONGEST || file.is_predicted() {
            return end;
        }
        let begin = end - moved;
        let each = end.next_multiple_of(PAGE) - begin / PAGE * PAGE;
        let size = self.host.status(fd).map_or(0, |status| status.size);
        let rate = self.class.rule(Direction::Read).rate;
        let worth = file.ramp().max(rate.units_in(FIRST)).min(rate.units_in(MOST));
        let there = size.saturating_sub(end).checked_div(step);
        let count = worth.checked_div(each).min(there).unwrap_or(0);
        file.set_ramp(worth.saturating_mul(2));
        if count == 0 {
            return end;
        }
        self.reserve_and_wait(Direction::Read, count * each);
        let wanted = if self.host.is_abandoned() { 0 } else { count };
        for next in 1..=wanted {
            self.host.read_ahead(fd, begin + next * step, moved);
        }
        let _ = self.settle(thread, Ticket { read: count * each, ..Ticket::OPEN });
        end + wanted * step
    }
}
