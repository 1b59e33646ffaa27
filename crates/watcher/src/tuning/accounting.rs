//! What is charged, and when.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "What is charged, and when":

    /// Time after a process was attached in which I/O of children that are not found yet may
    /// enter its account.
    UNKNOWN_CHILDREN: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Time for which a preloaded process that ran ahead of its books is expected to do so again.
    AHEAD_AGAIN: Nanos = Nanos::from_millis(1_000), Time, adr 13;
    /// Bytes that an account may be ahead of the books in a class that is held from outside
    /// alone.
    STRICT_LEAD: u64 = 256 << 10, Bytes, adr 13;
    /// Time for which it may be: a call in progress is settled sooner.
    STRICT_LEAD_FOR: Nanos = Nanos::from_millis(10), Time, adr 13;
    /// Bytes that an account may be ahead of the books of a preloaded process.
    RUNAWAY_LEAD: u64 = 8 << 20, Bytes, adr 13;
    /// Time for which it may be: what a long call reserved must not be charged twice.
    RUNAWAY_LEAD_FOR: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Bytes that an account may be ahead of the books while the process does I/O outside of
    /// calls.
    UNSEEN_LEAD: u64 = 256 << 10, Bytes, adr 13;
    /// Time for which it may be: books that are behind for other reasons are settled within a
    /// call.
    UNSEEN_LEAD_FOR: Nanos = Nanos::from_millis(2), Time, adr 13;
    /// Bytes ahead at which such a process is charged from outside at once.
    UNSEEN_LEAD_MOST: u64 = 2 << 20, Bytes, adr 13;
    /// Time of the limit that may be dirty in unlinked files without being charged yet.
    UNLINKED_FOR: Nanos = Nanos(4 * Nanos::SECOND.0), Time, adr 13;
    /// Bytes that may be, at any limit.
    UNLINKED_MOST: u64 = 64 << 20, Bytes, adr 13;
    /// Descriptors of a process that are looked through for unlinked files.
    UNLINKED_DESCRIPTORS: usize = 256, Count, adr 13;
    /// Time after which a process that had no such file is looked at again, unless it writes what
    /// the limit allows in it.
    UNLINKED_AGAIN: Nanos = Nanos::from_millis(20), Time, adr 13;
    /// Time in which the class of an ended child is found, before what came to its parent is
    /// charged there.
    CHILD_CLASS_WAIT: Nanos = Nanos::from_millis(10), Time, adr 38;
}
