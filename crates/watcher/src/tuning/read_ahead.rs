//! Kernel read-ahead of held processes.

use discnice_units::{Nanos, Rate};

use crate::tuning::tuning;

tuning! {
    "Kernel read-ahead of held processes":

    /// First stop of an attached process that has read already, in which its read-ahead is
    /// switched off.
    FIRST_STOP: Nanos = Nanos::from_millis(10), Time, adr 13;
    /// Time of the limit up to which a read-ahead window is no burst.
    BURST: Nanos = Nanos::from_millis(50), Time, adr 13;
    /// Bytes read since the last look at descriptors up to which calls read what they ask for.
    GROWN: u64 = 64 << 10, Bytes, adr 13;
    /// Descriptors of a process of which read-ahead is switched off.
    DESCRIPTORS: usize = 256, Count, adr 13;
    /// Limit up to which a process that reads page by page reaches it without read-ahead.
    PAGE_BY_PAGE: Rate = Rate::per_second(16 << 20), Rate, adr 13;
    /// Time for which a process reads without being held, above that limit, before it gets its
    /// read-ahead back.
    TRIAL: Nanos = Nanos::from_millis(1_000), Time, adr 13;
    /// Part of the limit below which a process is idle and shows no need of read-ahead.
    IDLE_SHARE: u64 = 16, Part, adr 13;
    /// Time for which a process keeps its read-ahead then, doubled each further time.
    KEEP_LEAST: Nanos = Nanos::from_millis(8_000), Time, adr 13;
    /// Longest time for which it does.
    KEEP_MOST: Nanos = Nanos::from_millis(600_000), Time, adr 13;
    /// Threads of a process of which the current calls are looked at for read positions.
    THREADS: usize = 1024, Count, adr 13;
}
