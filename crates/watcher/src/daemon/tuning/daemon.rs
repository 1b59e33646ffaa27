//! The daemon: its classes and clients.

use std::time::Duration;

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "The daemon: its classes and clients":

    /// Time for which another watcher that was just killed is believed to live.
    DYING: Nanos = Nanos::SECOND, Time, adr 8;
    /// Interval of tries to take over its classes.
    CLAIM_RETRY: Nanos = Nanos::from_millis(20), Time, adr 8;
    /// Classes up to which all are asked for new members at each step.
    ASKED: usize = 20, Count, adr 8;
    /// Time for which a class without members is watched: its next member may be on the way.
    EMPTY: Nanos = Nanos::SECOND, Time, adr 8;
    /// Interval at which pages of a class that are seldom touched are taken out of memory.
    TIDY: Nanos = Nanos(20 * Nanos::SECOND.0), Time, adr 8;
    /// Longest time between two looks at a class, as its watcher must show that it lives.
    SHOW: Nanos = Nanos::SECOND, Time, adr 8;
    /// What has this much time waits for the batches of a crowd.
    PATIENT: Nanos = Nanos::from_millis(50), Time, adr 8;
    /// Longest time for which it does.
    SLOW_BEAT: Nanos = Nanos::from_millis(250), Time, adr 8;
    /// Time for which a class is asked at each step after a member forked.
    JOINING: Nanos = Nanos::from_millis(250), Time, adr 8;
    /// Interval at which the parent of the watching process wakes up, which only waits for its
    /// end.
    GUARDIAN_LOOK: Duration = Duration::from_secs(3600), Time, adr 8;
    /// Time in which a daemon that was started answers, even on a busy machine.
    CLIENT_START: Duration = Duration::from_millis(5000), Time, adr 8;
    /// Time in which a running daemon has answered, unless the machine is very busy.
    CLIENT_ANSWER: Duration = Duration::from_millis(20), Time, adr 8;
    /// Longest wait for a daemon that was just started, by a command that has another mechanism.
    CLIENT_SOON: Duration = Duration::from_millis(500), Time, adr 8;
    /// Interval at which a daemon that was just started is asked.
    CLIENT_RETRY: Duration = Duration::from_millis(1), Time, adr 8;
    /// Clients that are connected at a time.
    CLIENTS: usize = 64, Count, adr 8;
    /// Time after which a client that has not sent its line is hung up on.
    CLIENT_PATIENCE: Nanos = Nanos(2 * Nanos::SECOND.0), Time, adr 8;
    /// Clients that are accepted at one look, as watched processes must be looked at, too.
    CLIENTS_AT_ONCE: usize = 256, Count, adr 8;
    /// Time for which no client is accepted when descriptors are short.
    LISTENER_REST: Nanos = Nanos::from_millis(100), Time, adr 8;
    /// Children of a class that have classes of their own at once.
    CHILD_CLASSES: usize = 256, Count, adr 38;
}
