//! Leases of budgets that many machines share.

use std::time::Duration;

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Leases of budgets that many machines share":

    /// Interval of looks at a class between two calls of the server.
    LOOK: Duration = Duration::from_millis(250), Time, adr 22;
    /// Time after which a wrong configuration, or a failed server, is looked at again.
    RETRY: Nanos = Nanos(5 * Nanos::SECOND.0), Time, adr 22;
    /// Most that is asked for before a server has told the cap.
    FIRST_WISH: u64 = 1 << 50, Bytes, adr 22;
    /// Difference of the clocks from which on the machine was suspended.
    SUSPENDED: Nanos = Nanos::from_millis(100), Time, adr 22;
    /// Time for which a class without members keeps its lease.
    EMPTY: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 22;
}
