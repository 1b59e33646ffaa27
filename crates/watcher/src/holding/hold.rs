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

use std::fmt;

use discnice_ledger::outside::{Mechanism, Reason};

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

/// A mechanism, applied to one process; see the module for its contract.
pub trait Hold: fmt::Debug {
    /// The mechanism.
    fn mechanism(&self) -> Mechanism;

    /// Returns true if the process stands because its own tracer does ([`super::Tracer`]).
    fn stops_tracer(&self) -> bool {
        false
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
