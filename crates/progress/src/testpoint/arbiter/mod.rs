//! Runs one polite thread of a user at a time, without a daemon (paper sections 4.5 and 7.1).
//!
//! The table of all threads lies in one segment that every process maps. The rules are those of
//! [`crate::model::superintendent`]; a thread that holds the lock applies them for all. So
//! there is no arbiter to die:
//!
//! - the lock is flock(2), which the kernel releases when its holder dies;
//! - a grant is one word of the granted thread's seat, valid by itself whatever else was left
//!   undone, and every waiter looks for itself from time to time, so a wake-up may get lost;
//! - the seat of a process that is gone (by its PID, or the PID's start time) is cleared by any
//!   waiter;
//! - a thread that keeps its turn for too long is presumed hung and passed over;
//! - a thread that cannot get the lock within a tenth of a second (its holder was stopped in the
//!   middle) goes on without.

mod layout;
mod map;
mod process;
mod seat;

use std::fs::File;
use std::io;

use rustix::fs::OFlags;

pub use seat::Seat;

/// The file that leads to this user's table, made where it is missing.
///
/// # Errors
/// There is no private directory, or what has this name there is no file of this user.
pub fn table() -> io::Result<File> {
    discnice_paths::runtime()?.open("seats", OFlags::RDWR | OFlags::CREATE)
}
