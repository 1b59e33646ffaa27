//! When a process is looked at.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "When a process is looked at":

    /// Interval of looks at a process that moved bytes just now, or that is held with some
    /// threads awake.
    BUSY: Nanos = Nanos(500_000), Time, adr 13;
    /// Time after it last moved bytes in which a process is looked at as a busy one.
    BUSY_FOR: Nanos = Nanos::from_millis(20), Time, adr 13;
    /// Interval of looks at a process that moved bytes not long ago.
    RECENT: Nanos = Nanos::from_millis(2), Time, adr 13;
    /// Time after it last moved bytes in which that interval holds.
    RECENT_FOR: Nanos = Nanos::from_millis(1_000), Time, adr 13;
    /// Interval of looks at a process that has moved nothing for longer.
    QUIET: Nanos = Nanos::from_millis(4), Time, adr 13;
    /// Time after it last moved bytes in which that interval holds.
    QUIET_FOR: Nanos = Nanos::from_millis(10_000), Time, adr 13;
    /// Shortest interval of looks at a process that has moved nothing for longer still.
    IDLE: Nanos = Nanos::from_millis(10), Time, adr 13;
    /// That interval grows to this part of the time since the process last moved bytes.
    IDLE_SHARE: u64 = 512, Part, adr 13;
    /// Longest interval of looks at a process that runs, and at one that does not charge itself.
    DORMANT: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Interval of looks at a preloaded process that has been asleep since the last.
    ASLEEP: Nanos = Nanos::from_millis(200), Time, adr 13;
    /// Time for which a process is looked at as a busy one after its account was first ahead of
    /// its books.
    SUSPECT_FOR: Nanos = Nanos::from_millis(20), Time, adr 13;
    /// Shortest interval of looks at preloaded processes, which charge themselves.
    PRELOADED: Nanos = Nanos::from_millis(2), Time, adr 13;
    /// Shortest interval of looks at a process that executes a program and may be closing its files.
    EXECUTING: Nanos = Nanos::from_millis(2), Time, adr 49;
    /// That interval grows to this part of the time since it was first found so.
    EXECUTING_SHARE: u64 = 4, Part, adr 49;
    /// Cheap looks at an idle process before one that also finds out if it has ended.
    GLANCES: u32 = 8, Count, adr 13;
    /// Interval of looks from which on a process is first asked if it has run at all: ten ticks
    /// of the slowest kernel.
    SLEPT_FIRST: Nanos = Nanos::from_millis(100), Time, adr 13;
    /// Each watched process adds this to the interval of looks at idle ones, two hundred times
    /// what a look costs.
    CROWD: Nanos = Nanos(600_000), Time, adr 13;
    /// Most batches into which looks at the idle processes of a crowd are gathered, as waking up costs
    /// more than looking.
    CROWD_BATCHES: u64 = 16, Count, adr 13;
    /// Least number of processes in each of several batches: what is urgent waits for the end of one.
    BATCH: u64 = 32, Count, adr 13;
    /// Shortest time between two beats, at which all is done that is not urgent.
    BEAT: Nanos = Nanos(12_500_000), Time, adr 13;
    /// Time for which it is used what was read of mounts, to leave files alone that may make the
    /// watcher wait.
    MOUNTS_FOR: Nanos = Nanos::from_millis(1_000), Time, adr 48;
    /// Slice of processor time that the watcher asks for, the shortest that the kernel gives, to
    /// wake up in time.
    PROCESSOR_SLICE: Nanos = Nanos(100_000), Time, adr 13;
}
