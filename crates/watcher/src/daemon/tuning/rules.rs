//! Processes that enter a class by a rule.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Processes that enter a class by a rule":

    /// Shortest interval of looks for processes that enter a class by a rule.
    TICK: Nanos = Nanos::from_millis(250), Time, adr 34;
    /// Longest interval of these looks.
    LONGEST: Nanos = Nanos::from_millis(800), Time, adr 34;
    /// Processor time after which a look ends.
    BUDGET: Nanos = Nanos(1_000_000), Time, adr 34;
    /// Processes that are looked at each time, however long that takes.
    LEAST: usize = 16, Count, adr 34;
    /// Part of the time that looks may take.
    SHARE: u64 = 400, Part, adr 34;
    /// Age up to which a process is looked at each time.
    YOUNG: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 34;
    /// Shortest time between the starts of two rounds through all processes.
    ROUND: Nanos = Nanos(10 * Nanos::SECOND.0), Time, adr 34;
    /// Other processes that are looked at each time.
    PORTION: usize = 32, Count, adr 34;
    /// Ids given out between two looks from which on all processes are listed instead.
    RELIST_FORKS: u32 = 100, Count, adr 34;
    /// Interval at which the configuration is looked at for changes.
    FILES: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 34;
}
