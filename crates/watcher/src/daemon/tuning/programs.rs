//! Programs that are policies of classes.

use std::time::Duration;

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Programs that are policies of classes":

    /// Interval at which the program that is a class's policy is asked.
    INTERVAL: Duration = Duration::from_millis(250), Time, adr 26;
    /// Time after which an answer is late.
    PATIENCE: Duration = Duration::from_secs(1), Time, adr 26;
    /// Late answers in a row after which the program is started anew.
    LATE: u32 = 10, Count, adr 26;
    /// Time after which a program that ended, or could not be started, is started again.
    RETRY: Nanos = Nanos(5 * Nanos::SECOND.0), Time, adr 26;
    /// Time after which the program of a class without members is ended.
    EMPTY: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 26;
}
