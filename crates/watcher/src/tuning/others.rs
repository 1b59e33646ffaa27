//! What others do on the same disks.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "What others do on the same disks":

    /// Time after it last moved bytes in which a class may do so again at any moment.
    ACTIVE_FOR: Nanos = Nanos::SECOND, Time, adr 7;
    /// Interval of observations while a yielding class is active.
    OBSERVE_ACTIVE: Nanos = Nanos::from_millis(20), Time, adr 7;
    /// Interval of observations while a yielding class is only held: sooner than its members make one of their own, which
    /// know less.
    OBSERVE_HELD: Nanos = Nanos::from_millis(40), Time, adr 7;
    /// Bytes up to which a program has read only itself and its libraries, which may lie on
    /// another disk than its files.
    STARTUP_BYTES: u64 = 4 << 20, Bytes, adr 7;
    /// Interval of looks at the disks that the files of a member lie on.
    DISKS_AGAIN: Nanos = Nanos::SECOND, Time, adr 7;
    /// Time for which the size of a disk's requests is remembered: it can be set, and the disk replaced.
    REQUESTS_FOR: Nanos = Nanos(10 * Nanos::SECOND.0), Time, adr 20;
    /// Processes up to which it is known at once what all of them have moved.
    KNOWN_AT_ONCE: usize = 200, Count, adr 7;
    /// Time after its last wait for a disk for which a process of no class is looked at each
    /// time.
    TASK_SUSPECT_FOR: Nanos = Nanos(10 * Nanos::SECOND.0), Time, adr 7;
    /// Most processes that are looked at each time.
    TASK_SUSPECTS: usize = 16, Count, adr 7;
    /// Other processes that are looked at each time.
    TASK_PORTION: usize = 48, Count, adr 7;
    /// Threads of a process that are looked at.
    TASK_THREADS: usize = 32, Count, adr 7;
    /// Shortest time between the starts of two rounds through all processes.
    TASK_ROUND: Nanos = Nanos::from_millis(100), Time, adr 7;
    /// Time for which ids of kernel threads are remembered: they may be reused.
    KERNEL_THREADS_FOR: Nanos = Nanos(10 * Nanos::SECOND.0), Time, adr 7;
    /// Time for which the disks of a process of no class are remembered.
    TASK_DISKS_FOR: Nanos = Nanos::SECOND, Time, adr 7;
    /// Time in state D without a context switch after which a task waits for a server that does
    /// not answer, not for a disk.
    TASK_HUNG: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 7;
    /// Descriptors of a process that are asked for their disks.
    DISK_DESCRIPTORS: usize = 256, Count, adr 7;
    /// Length of a mapping below which it is a program's own (locales, message catalogues).
    LEAST_MAPPING: u64 = 4 << 20, Bytes, adr 7;
    /// Looks at which a process has moved bytes for each at which it waits, at most, if it waits for what it moves.
    MOVES_PER_WAIT: u32 = 20, Count, adr 20;
    /// Looks at which a process has moved bytes after which older ones count half.
    MOVES: u32 = 100, Count, adr 20;
}
