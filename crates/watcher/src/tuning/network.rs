//! The network, from outside.

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "The network, from outside":

    /// Interval of looks at connections while any moves bytes.
    LOOK: Nanos = Nanos::from_millis(20), Time, adr 37;
    /// Interval of looks at connections that move bytes below a limit.
    LOOK_LIMITED: Nanos = Nanos::from_millis(2), Time, adr 46;
    /// Each connection makes looks at least so far apart, some sixty times what it costs to look at.
    LOOK_EACH: Nanos = Nanos(200_000), Time, adr 46;
    /// Longest interval of looks because of many connections.
    LOOK_MOST: Nanos = Nanos::SECOND, Time, adr 46;
    /// Shortest interval of searches for new connections.
    SEARCH: Nanos = Nanos::from_millis(50), Time, adr 37;
    /// Interval of searches while no class regulates connections, as that may change.
    SEARCH_UNUSED: Nanos = Nanos::from_millis(100), Time, adr 37;
    /// Shortest interval of searches for new connections below a limit.
    SEARCH_LIMITED: Nanos = Nanos::from_millis(10), Time, adr 46;
    /// Each descriptor adds this to the interval, two hundred times what it costs to look at.
    SEARCH_EACH: Nanos = Nanos(1_000_000), Time, adr 37;
    /// Longest interval of searches for new connections.
    SEARCH_MOST: Nanos = Nanos(5 * Nanos::SECOND.0), Time, adr 37;
    /// Time after it last moved bytes for which a connection counts for the shares of others.
    ACTIVE_FOR: Nanos = Nanos::from_millis(200), Time, adr 37;
    /// Time without traffic after which a path is forgotten.
    FORGOTTEN: Nanos = Nanos(300 * Nanos::SECOND.0), Time, adr 37;
    /// Age up to which all that a process's connections have moved is charged; later only what is new.
    YOUNG: Nanos = Nanos::SECOND, Time, adr 46;
    /// Part of a limit by which the kernel may send more: headers count for it.
    HEADERS: u64 = 16, Part, adr 46;
    /// Time below a limit for which bytes may be on their way to a connection with a shorter round trip.
    WINDOW_TIME: Nanos = Nanos::from_millis(20), Time, adr 46;
    /// Bytes that may always be on their way to a connection: smaller windows wait for delayed acknowledgements.
    WINDOW: u64 = 16 << 10, Bytes, adr 46;
    /// Descriptors of a process that are searched for connections.
    DESCRIPTORS: usize = 8192, Count, adr 37;
    /// Processes of a class that are searched for connections.
    PROCESSES: usize = 1024, Count, adr 37;
    /// Connections of a class that are regulated.
    CONNECTIONS: usize = 4096, Count, adr 37;
}
