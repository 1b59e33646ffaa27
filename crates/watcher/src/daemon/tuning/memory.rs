//! Pausing classes for their memory.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Pausing classes for their memory":

    /// Interval of looks for tasks that wait for memory.
    CALM: Nanos = Nanos::from_millis(100), Time, adr 15;
    /// Interval of looks for classes with memory thresholds while there are none.
    NONE: Nanos = Nanos::from_millis(1_000), Time, adr 15;
    /// Interval of looks at the memory of each class while tasks wait for memory.
    CLOSE: Nanos = Nanos::from_millis(20), Time, adr 15;
    /// Time for which a class is paused at a time.
    HOLD: Nanos = Nanos::from_millis(200), Time, adr 15;
    /// Part of the time from which on waiting for memory counts.
    PRESSED: u64 = 50, Part, adr 15;
    /// Page faults of others between two looks that do not count.
    FEW: u64 = 1, Count, adr 15;
    /// Part of the classes' own page faults up to which those of others do not count.
    PART: u64 = 8, Part, adr 15;
}
