//! How new processes are found.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "How new processes are found":

    /// Interval of looks through all slots of a class, should a new process have been missed.
    ROLL_CALL: Nanos = Nanos::SECOND, Time, adr 13;
    /// Times that this interval doubles in a crowd, until a process joins.
    ROLL_CALL_DOUBLINGS: u32 = 3, Count, adr 13;
    /// Time after a fork, or after bytes were moved, in which children that announce nothing are
    /// likely.
    FORKING_FOR: Nanos = Nanos::SECOND, Time, adr 13;
    /// Interval of looks for new processes while such children are likely.
    LIVELY: Nanos = Nanos::from_millis(2), Time, adr 13;
    /// Interval of looks for new processes while they are possible.
    IDLE: Nanos = Nanos::from_millis(10), Time, adr 13;
    /// Interval of looks for new processes while the kernel reports forks and reports none, should it
    /// have failed to.
    UNREPORTED: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Interval, and time, in which children of the last watched process that ended are looked
    /// for.
    ORPHANS: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Interval while no process is watched.
    EMPTY: Nanos = Nanos::SECOND, Time, adr 13;
    /// Forks between two looks from which on all processes are listed anew.
    RELIST_FORKS: u32 = 1 << 16, Count, adr 13;
    /// New processes that are looked at in one go, as known ones must still be held.
    PORTION: u32 = 64, Count, adr 13;
    /// Forks between two looks up to which new processes are looked for by number.
    BY_NUMBER: u32 = 512, Count, adr 13;
    /// Time in which fork events may cause a bounded number of looks at once.
    HURRY_WINDOW: Nanos = Nanos::from_millis(20), Time, adr 13;
    /// Looks that fork events may cause in that time.
    HURRIES: u32 = 20, Count, adr 13;
    /// Age up to which one list of all processes serves several classes that begin to be watched.
    SNAPSHOT: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 13;
    /// Fork events that may wait in the kernel, as many as an ordinary user gets.
    FORK_QUEUE: usize = 1 << 20, Bytes, adr 13;
    /// Forks that are remembered at least; twice as many at most.
    FORKS_KEPT: usize = 1 << 15, Count, adr 13;
    /// Generations through which the ancestry of a process is followed.
    GENERATIONS: usize = 64, Count, adr 13;
    /// Processes that executed a program and are remembered until they are asked for.
    EXECUTED: usize = 64, Count, adr 13;
}
