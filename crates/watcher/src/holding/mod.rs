//! How a process is made to stand still: by ptrace(2), where that is not permitted by a freezer cgroup, and where none can be had
//! by stop signals.
//!
//! [`hold`] is the contract.

mod abandoned;
mod cgroup;
mod cgroup_freezer;
pub(crate) mod debuggers;
mod hold;
mod job;
mod own_tracer;
mod ptrace;
mod signals;
mod thawer;

use discnice_ledger::outside::Mechanism;
use discnice_processes::tree::Process;

pub use abandoned::let_go_of_abandoned;
pub use cgroup::step_out;
pub use cgroup_freezer::Freezer;
pub use hold::{Grip, Hold, Refused};
pub use job::HeldJob;
pub use own_tracer::Tracer;
pub use ptrace::Freeze;
pub use signals::{SharedGuardian, Signals};
pub use thawer::Thawer;

/// The processes that let go of the held if we are killed, where the kernel does not; started when they are first needed.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Continues processes that we stopped by a signal.
    pub guardian: SharedGuardian,
    /// Thaws processes that we froze by a cgroup.
    pub thawer: Thawer,
}

/// The best mechanism for a process, as long as nothing speaks against it.
#[must_use]
pub fn best(process: Process) -> Box<dyn Hold> {
    Box::new(Freeze::new(process.id()))
}

/// The next best mechanism for a process that this one is forbidden to hold. Signals are the last resort.
#[must_use]
pub fn next_best(process: Process, forbidden: &dyn Hold, guards: &Guards) -> Option<Box<dyn Hold>> {
    if forbidden.mechanism() == Mechanism::Ptrace
        && !forbidden.stops_tracer()
        && let Some(freezer) = Freezer::find(process, guards.thawer.clone())
    {
        return Some(Box::new(freezer));
    }
    let signals = || Signals::new(process, guards.guardian.clone());
    (forbidden.mechanism() != Mechanism::Signals).then(|| -> Box<dyn Hold> { Box::new(signals()) })
}
