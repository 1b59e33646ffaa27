//! What the supervisor knows of a call before it examines the descriptor: the conditions of its decision.

use discnice_ledger::Class;
use discnice_regulator::Thread;
use discnice_regulator::decision::{Conditions, SHORT};

use crate::calls::{Amount, Kind, Request};

/// Bytes that a thread of a class that gives way writes unasked while nothing holds the class: what it dirties is then
/// written back, so that little of it is on its way when others need the disk.
const UNASKED: u64 = 256 << 10;

/// Bytes that a thread of a class that protects the page cache reads unasked: what it has read of a large file is then
/// dropped.
const UNASKED_READS: u64 = 4 << 20;

/// A call of a process that the supervisor regulates.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The class.
    pub class: &'a Class,
    /// What the thread found before.
    pub thread: &'a Thread,
    /// The call.
    pub request: &'a Request,
    /// Its descriptor was found unable to reach a disk a few calls ago.
    pub is_other: bool,
    /// Bytes of writes that have passed since one was looked at.
    pub unasked: u64,
    /// Bytes of reads that have passed since one was looked at.
    pub unasked_reads: u64,
}

impl Seen<'_> {
    fn writes(&self) -> bool {
        matches!(self.request.kind, Kind::Write | Kind::Copy)
    }
}

impl Conditions for Seen<'_> {
    /// Only a write goes on for this reason: what was changed on a descriptor for its reads is to be undone
    /// once no limit is in force, and whether it was is not known yet. What a copy reads may have to leave the page cache.
    fn is_free(&self) -> bool {
        let is_unasked = !self.class.yields() || self.unasked < UNASKED;
        let is_read = self.request.kind == Kind::Copy && self.class.protects_cache();
        self.writes() && !is_read && !self.class.is_limited() && is_unasked
    }
    fn is_untouched(&self) -> bool {
        self.writes()
    }
    fn is_limited(&self) -> bool {
        self.class.is_limited()
    }
    fn is_calm(&self) -> bool {
        self.class.is_calm()
    }
    fn is_other(&self) -> bool {
        self.is_other && self.request.kind != Kind::Copy
    }
    fn is_short(&self) -> bool {
        let is_unasked = !self.class.protects_cache() || self.unasked_reads < UNASKED_READS;
        is_unasked && matches!(self.request.amount, Amount::Bytes(count) if count <= SHORT)
    }
    /// A directory is read without a look only while nothing is owed, either.
    fn missed(&self) -> bool {
        let owes = self.request.kind == Kind::Directory && !self.class.is_calm();
        self.thread.cache.missed() || owes
    }
}
