//! How a process is made to stand still: by ptrace(2), where that is not permitted by a freezer cgroup, and where none can be had
//! by stop signals.
//!
//! The contract of a [`Hold`]:
//!
//! 1. [`Hold::press`] may be called any number of times; it stops what of the process is awake now.
//!    A thread that waits for something other than a disk (a socket, a timer, a lock) is left alone:
//!    it moves nothing, and calls that a stop would interrupt (epoll_wait(2) and others, signal(7))
//!    go on undisturbed, which only ptrace(2) can see to for those that are stopped (where only a whole process can be held, as long as all of it sleeps, or not at all);
//! 2. [`Hold::release`] lets go of everything, as soon as it can: a thread in an uninterruptible wait
//!    can be let go only when that has ended, so it is called until it says that it is done;
//! 3. a process that is killed while holding holds nothing any more: a helper process sees to that
//!    where the kernel does not; a process that is stopped while holding, or hangs, is killed, if
//!    it has a deadline ([`discnice_sys::deadline`]);
//! 4. a process that another program stopped or traces is left alone;
//! 5. no method waits, but for a lock of the kernel's when a freezer cgroup begins or ends.

mod abandoned;
mod cgroup;
mod cgroup_freezer;
pub(crate) mod debuggers;
mod job;
mod own_tracer;
mod ptrace;
mod signals;
mod thawer;

use std::fmt;

use discnice_ledger::outside::{Mechanism, Reason};
use discnice_processes::tree::Process;

pub use abandoned::let_go_of_abandoned;
pub use cgroup::step_out;
pub use cgroup_freezer::Freezer;
pub use job::Job;
pub use own_tracer::Tracer;
pub use ptrace::Freeze;
pub use signals::{Signals, Stopper};
pub use thawer::Thawer;

/// How a process stands after it was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grip {
    /// All of it stands.
    Firm,
    /// Something is still awake, or may wake: press again soon.
    Loose,
}

/// Why a process cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Another program traces it.
    Traced,
    /// The system does not permit it.
    Forbidden,
    /// It would show in a terminal.
    Foreground,
}

impl Refused {
    /// Returns the reason as the class's books have it.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Traced => Reason::Traced,
            Self::Forbidden => Reason::Forbidden,
            Self::Foreground => Reason::Foreground,
        }
    }
}

/// By what a process is held, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// ptrace(2), [`Freeze`].
    Ptrace,
    /// A cgroup, [`Freezer`].
    Freezer,
    /// SIGSTOP, [`Signals`].
    Signals,
    /// Its own tracer stands, [`Tracer`].
    Tracer,
}

/// The processes that let go of the held if we are killed, where the kernel does not; started when they are first needed.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Continues processes that we stopped by a signal.
    pub stopper: Stopper,
    /// Thaws processes that we froze by a cgroup.
    pub thawer: Thawer,
}

/// A mechanism, applied to one process; see the module for its contract.
pub trait Hold: fmt::Debug {
    /// By what it holds.
    fn means(&self) -> Means;

    /// What that is called in the class's books: a freeze is one by whatever means.
    fn mechanism(&self) -> Mechanism {
        match self.means() {
            Means::Ptrace | Means::Freezer | Means::Tracer => Mechanism::Freeze,
            Means::Signals => Mechanism::Signals,
        }
    }

    /// Stops what is awake.
    ///
    /// # Errors
    /// It cannot be held at all; nothing is held then.
    fn press(&mut self) -> Result<Grip, Refused>;

    /// Stops everything, also what waits: for a hold that lasts.
    ///
    /// # Errors
    /// As [`Hold::press`].
    fn press_all(&mut self) -> Result<Grip, Refused> {
        self.press()
    }

    /// Takes note of what has stopped or ended meanwhile.
    fn tend(&mut self);

    /// Lets go; true when nothing is held any more.
    fn release(&mut self) -> bool;
}

/// The best mechanism for a process, as long as nothing speaks against it.
#[must_use]
pub fn best(process: Process) -> Box<dyn Hold> {
    Box::new(Freeze::new(process.id()))
}

/// The next best mechanism for a process that this one is forbidden to hold. Signals are the last resort.
#[must_use]
pub fn next_best(process: Process, forbidden: Means, guards: &Guards) -> Option<Box<dyn Hold>> {
    if forbidden == Means::Ptrace
        && let Some(freezer) = Freezer::find(process, guards.thawer.clone())
    {
        return Some(Box::new(freezer));
    }
    let signals = || Signals::new(process, guards.stopper.clone());
    (forbidden != Means::Signals).then(|| -> Box<dyn Hold> { Box::new(signals()) })
}
