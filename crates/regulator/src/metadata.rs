//! Calls that touch directories and inodes, or do I/O as a side effect.

use discnice_estimator::Access;
use discnice_ledger::policy::Resource;
use discnice_ledger::trace::Why;
use discnice_ledger::{Direction, Meter};

use crate::host::Host;
use crate::{Regulator, Thread, Ticket};

/// What a call of this kind reads when it misses the cache: a directory or inode table block.
const BLOCK: u64 = 4096;

impl<H: Host> Regulator<'_, H> {
    /// Admits a call with a cost that is known only from earlier calls.
    pub fn admit_metadata(&self, thread: &Thread) -> Ticket {
        if !self.class.is_limited() || !thread.cache.missed() {
            let why = if self.class.is_limited() { Why::Cached } else { Why::Unlimited };
            thread.outcomes.because(why);
            return Ticket::FREE;
        }
        if !self.owes(Direction::Read) {
            thread.outcomes.because(Why::NothingOwed);
            return Ticket::FREE;
        }
        thread.outcomes.because(Why::Reserved);
        self.reserve_and_wait(Direction::Read, BLOCK);
        self.begin_piece(thread);
        Ticket { read: BLOCK, ..Ticket::OPEN }
    }

    /// Completes it.
    pub fn complete_metadata(&self, thread: &Thread, access: Access, ticket: Ticket) {
        let forecast = self.forecast_metadata(thread.switches.waited(), access);
        let _ = self.settle(thread, Ticket { forecast, ..ticket });
    }

    /// Admits one metadata operation: a call on names or inodes, which is charged whether it
    /// reaches a disk or not. What keeps the others waiting is the file system's locks and journal,
    /// not its bytes.
    pub fn admit_operation(&self, thread: &Thread) {
        let meter = self.class.meter(Resource::Metadata);
        let now = self.wait_for(meter, Meter::reserve_operations, 1, self.host.now());
        meter.settle(self.class.pace(), now, 1, thread.names.take().saturating_add(1));
    }

    /// Counts the metadata operations that a thread has done since they were last counted.
    pub fn count_operations(&self, thread: &Thread) {
        let done = thread.names.take();
        if done > 0 {
            let meter = self.class.meter(Resource::Metadata);
            meter.settle(self.class.pace(), self.host.now(), 0, done);
        }
    }
}
