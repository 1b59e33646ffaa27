//! How and for how long a process is stopped.

use std::time::Duration;

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "How and for how long a process is stopped":

    /// Debt up to which a process is not stopped, but looked at again: a stop has a price of its
    /// own.
    TOLERATED_DEBT: Nanos = Nanos::from_millis(8), Time, adr 13;
    /// Longest stop without a look for a pending signal.
    LONGEST_STOP: Nanos = Nanos::from_millis(50), Time, adr 13;
    /// Time for which a process runs to receive a pending signal.
    SIGNAL_WINDOW: Nanos = Nanos(100_000), Time, adr 13;
    /// Part of its time that the watcher spends looking at threads of a stopped process.
    PRESS_SHARE: u64 = 25, Part, adr 13;
    /// Looks at which a held process had moved bytes all the same before its sleeping threads are
    /// stopped, too.
    SLIPS: u32 = 4, Count, adr 13;
    /// Stop of a process that the user has paused, repeated as long as it is.
    PAUSE: Nanos = Nanos::from_millis(10_000), Time, adr 13;
    /// Time for which a process runs so that a debugger can trace it, repeated as long as one may
    /// be about to.
    DEBUGGER_WINDOW: Nanos = Nanos::from_millis(10), Time, adr 13;
    /// Longest time in all for which it runs for that: what names a process all the time is no
    /// debugger.
    DEBUGGER_BUDGET: Nanos = Nanos::from_millis(2_000), Time, adr 13;
    /// Part of the time that passes by which that budget fills up again.
    DEBUGGER_REFILL: u64 = 4, Part, adr 13;
    /// Age of a stop from which on a process that moves bytes is known to run on although its tracer was stopped.
    TRACER_DOUBT: Nanos = Nanos::from_millis(250), Time, adr 13;
    /// Time for which a process is not held after it ran on although its tracer was stopped.
    TRACER_RETRY: Nanos = Nanos::from_millis(10_000), Time, adr 13;
    /// Age at which the command line of a new process is first read, then at twice its age each
    /// time.
    DEBUGGER_FIRST_LOOK: Nanos = Nanos(500_000), Time, adr 13;
    /// Age up to which a new process is looked at as one that may be about to trace another.
    DEBUGGER_AGE: Nanos = Nanos::SECOND, Time, adr 13;
    /// Interval of looks at a new process that names others: it may have begun, or ended.
    DEBUGGER_LOOK: Nanos = Nanos::from_millis(5), Time, adr 13;
    /// Most new processes of which the command line is read; more are born only while the machine
    /// starts.
    DEBUGGERS: usize = 64, Count, adr 13;
    /// Rounds in which all that can be held at once of a job is held.
    JOB_ROUNDS: u32 = 20, Count, adr 13;
    /// Looks at a suspended job from which on its sleeping threads are held, too.
    JOB_SLEEPERS: u32 = 5, Count, adr 13;
    /// Looks at a suspended job between two at its held processes and for new ones.
    JOB_LOOKS: u32 = 25, Count, adr 13;
    /// Time between two rounds of holding a job.
    JOB_ROUND: Duration = Duration::from_millis(1), Time, adr 13;
    /// Rounds in which all processes of a cgroup are moved; some may be born meanwhile.
    CGROUP_ROUNDS: u32 = 8, Count, adr 13;
    /// Tries to remove a cgroup that the watcher left.
    CGROUP_REMOVALS: u32 = 50, Count, adr 13;
    /// Time between two of these tries.
    CGROUP_REMOVAL_WAIT: Duration = Duration::from_millis(20), Time, adr 13;
}
