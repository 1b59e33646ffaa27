//! Giving way on the network.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Giving way on the network":

    /// Interval of looks at connections while any moves bytes.
    LOOK: Nanos = Nanos::from_millis(20), Time, adr 37;
    /// Shortest interval of searches for new connections.
    SEARCH: Nanos = Nanos::from_millis(50), Time, adr 37;
    /// Each descriptor adds this to the interval, two hundred times what it costs to look at.
    SEARCH_EACH: Nanos = Nanos(1_000_000), Time, adr 37;
    /// Longest interval of searches for new connections.
    SEARCH_MOST: Nanos = Nanos(5 * Nanos::SECOND.0), Time, adr 37;
    /// Time after it last moved bytes for which a connection counts for the shares of others.
    ACTIVE_FOR: Nanos = Nanos::from_millis(200), Time, adr 37;
    /// Time without traffic after which a path is forgotten.
    FORGOTTEN: Nanos = Nanos(300 * Nanos::SECOND.0), Time, adr 37;
    /// Descriptors of a process that are searched for connections.
    DESCRIPTORS: usize = 1024, Count, adr 37;
    /// Processes of a class that are searched for connections.
    PROCESSES: usize = 256, Count, adr 37;
    /// Connections of a class that are regulated.
    CONNECTIONS: usize = 256, Count, adr 37;
}
