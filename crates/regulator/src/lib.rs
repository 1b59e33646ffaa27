//! The way of one call: admit, the real call, complete.
//!
//! ```text
//! program -> hook -> admit(request)     what will it cost? take a place in the class's queue, wait
//!             |      the real call
//!             +----> complete(ticket)   settle: charge += account - reservation
//! ```
//!
//! *Pace, then settle.* Whatever a call is expected to cost is reserved before it, and what the
//! kernel's account says it did cost is settled after it, so errors never accumulate. Nothing is
//! asked of a call that only touched the page cache: it was too fast to have started I/O, and
//! whatever its thread did cause since the last look is found by the next look.
//!
//! Principles:
//! - policy ([`discnice_ledger::policy`]) and mechanism ([`Host`]) meet here and nowhere else;
//! - whatever is known about a descriptor ([`File`]) is a hint: the program may close or replace
//!   it behind our back, and then a charge may come late, but no result changes;
//! - there are no errors: what cannot be regulated passes.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

mod backlog;
mod cancelled_writes;
pub mod decision;
mod disk_time;
mod file;
mod forecast;
mod forecast_write;
mod fuse_daemons;
mod giving_way;
mod host;
mod judging;
mod kernel_copy;
pub mod ledger;
mod linux;
mod loading;
mod mapping;
mod metadata;
mod net;
mod pacing;
mod protection;
mod read;
mod shaping;
pub mod startup;
mod strides;
mod thread;
mod ticket;
mod write;

#[cfg(test)]
mod tests;

pub use backlog::{Backlog, left_of};
pub use disk_time::occupy;
pub use file::File;
pub use giving_way::{Witness, observe, observe_after};
pub use host::{Advice, DiskTraffic, FileStatus, Host, NetworkTraffic, Woken, WriteMode};
pub use linux::Linux;
pub use mapping::Mapped;
pub use net::{Flow, LimitsVersion, Turn};
pub use thread::{Due, Outcome, Thread};
pub use ticket::{Forecast, Ticket};
pub use write::{Closing, portion as write_back_portion};

use core::cell::Cell;

pub use discnice_estimator::Access;
use discnice_ledger::{Board, Class, member::Books};

/// Everything that a call needs: the host, the class with its limits, and the books of the process.
#[derive(Debug, Clone, Copy)]
pub struct Regulator<'a, H> {
    host: &'a H,
    class: &'a Class,
    books: &'a Books,
    board: Option<&'a Board>,
    held: Option<&'a Cell<u64>>,
}

impl<'a, H: Host> Regulator<'a, H> {
    /// Creates a regulator for one process of `class` that keeps its charges in `books`.
    #[must_use]
    pub const fn new(host: &'a H, class: &'a Class, books: &'a Books) -> Self {
        Self { host, class, books, board: None, held: None }
    }

    /// Adds the board on which this user's classes see each other.
    #[must_use]
    pub const fn with_board(self, board: Option<&'a Board>) -> Self {
        Self { board, ..self }
    }

    /// Adds where to sum up how long the calling thread is held ([`thread::Outcomes::held`]).
    #[must_use]
    pub const fn with_held(self, held: &'a Cell<u64>) -> Self {
        Self { held: Some(held), ..self }
    }
}
