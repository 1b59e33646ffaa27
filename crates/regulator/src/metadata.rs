//! Calls that touch directories and inodes, or do I/O as a side effect.

use discnice_estimator::Access;
use discnice_ledger::policy::Resource;
use discnice_ledger::trace::Why;
use discnice_ledger::{Direction, Meter};
use discnice_units::Nanos;

use crate::host::Host;
use crate::{Regulator, Thread, Ticket};

/// What a call of this kind reads when it misses the cache: a directory or inode table block.
const BLOCK: u64 = 4096;
/// Changes of names or inodes that are a piece of work: sixty-four inodes are written with some seeks, as they lie together.
const CHANGES_IN_PIECE: u64 = 64;

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

    /// Admits a change of names or inodes; returns true if it waited. What it dirties is in no account: the file system
    /// writes it with its journal, later, and a commit of others waits for all of it. So while the class gives way,
    /// changes take the disk's time: as many as make a piece of work pass together, so that few commits meet any.
    pub fn admit_change(&self) -> bool {
        let Some(piece) = self.time_of_piece(CHANGES_IN_PIECE * BLOCK) else { return false };
        let (now, owed) = (self.host.now(), self.frontier(Direction::Write));
        let waits = owed > now.plus(piece);
        if waits {
            self.wait_until_paid(owed);
        }
        let now = self.host.now();
        self.class.prolong(Direction::Write, (now, now), 0, Nanos(piece.0 / CHANGES_IN_PIECE));
        waits
    }

    /// Counts the metadata operations that a thread has done since they were last counted, and its changes.
    pub fn count_operations(&self, thread: &Thread) {
        let _ = self.count_changes(thread);
        let done = thread.names.take();
        if done > 0 {
            let meter = self.class.meter(Resource::Metadata);
            meter.settle(self.class.pace(), self.host.now(), 0, done);
        }
    }

    /// Counts the changes of names and inodes that a thread has made since they were last counted; returns what they dirty.
    pub fn count_changes(&self, thread: &Thread) -> u64 {
        let changes = thread.names.take_changes();
        if changes > 0 {
            self.class.note_changed_names(changes);
        }
        changes * BLOCK
    }
}
