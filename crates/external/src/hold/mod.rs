//! How a process is made to stand still.
//!
//! The contract of a [`Hold`]:
//!
//! 1. [`Hold::press`] may be called any number of times; it stops what of the process is awake now.
//!    A thread that waits for something other than a disk (a socket, a timer, a lock) is left alone:
//!    it moves nothing, and calls that a stop would interrupt (epoll_wait(2) and others, signal(7))
//!    go on undisturbed;
//! 2. [`Hold::release`] lets go of everything, as soon as it can: a thread in an uninterruptible wait
//!    can be let go only when that has ended, so it is called until it says that it is done;
//! 3. whoever is killed while holding holds nothing any more;
//! 4. a process that somebody else stopped or traces is left alone;
//! 5. no method waits.

mod freeze;
mod job;
mod signals;

use std::fmt;

use discnice_benice::tree::Process;
use discnice_budget::outside::{Mechanism, Reason};

pub use freeze::Freeze;
pub use job::Job;
pub use signals::{Signals, Stopper};

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
    /// Somebody else traces it.
    Traced,
    /// The system does not permit it.
    Forbidden,
    /// It would show in a terminal.
    Foreground,
}

impl Refused {
    /// The same in the class's books.
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
    /// Which mechanism it is.
    fn mechanism(&self) -> Mechanism;

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
