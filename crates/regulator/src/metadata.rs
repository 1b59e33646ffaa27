//! Calls that touch directories and inodes, or do I/O as a side effect.

use discnice_budget::Direction;

use crate::host::Host;
use crate::{Regulator, Thread, Ticket};

/// What a call of this kind reads when it misses the cache: a directory or inode table block.
const BLOCK: u64 = 4096;

impl<H: Host> Regulator<'_, H> {
    /// Admits a call whose cost only its past tells.
    pub fn admit_metadata(&self, thread: &Thread) -> Ticket {
        if !self.class.is_limited() || !thread.missed() || !self.owes(Direction::Read) {
            return Ticket::FREE;
        }
        self.reserve_and_wait(Direction::Read, BLOCK);
        Ticket { read: BLOCK, ..Ticket::OPEN }
    }

    /// Completes it.
    pub fn complete_metadata(&self, thread: &Thread, ticket: Ticket) {
        let forecast = self.forecast_metadata(thread.was_slow(), BLOCK);
        let _ = self.settle(thread, Ticket { forecast, ..ticket });
    }
}
