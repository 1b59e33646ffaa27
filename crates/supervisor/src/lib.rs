//! Regulation from outside, call by call: seccomp user notification.
//!
//! A program that our library cannot enter (static, musl, Go) is executed below a filter
//! ([`filter`]) that tells a supervisor of each call that can move file data ([`calls`]). The
//! program's thread waits while the supervisor asks the same regulator that works inside other
//! programs, which charges the same class, and then lets the call be made as if nothing had been.
//! No privilege is needed, but the program renounces gaining any: `sudo` does not work below it.
//!
//! ```text
//! run --+-- fork, fork --> supervisor --fork--> second holder of the listener
//!       |  filter, listener ----^  receive, decide ... answer "continue"
//!       +-- exec --> program: read() -> waits ----------^
//! ```
//!
//! - [`launch`]: how a program gets below a filter;
//! - [`pair`]: two processes, of which each can replace the other;
//! - [`supervisor`], [`lead`], [`interrupt`], [`table`]: receiving, waiting, answering;
//! - [`caller`], [`process`], [`descriptor`], [`place`]: what is known of a thread, a process, one of its descriptors, and a
//!   file system;
//! - [`closed`]: what is left to be done with files that were closed;
//! - [`host`], [`proc`]: the mechanism, from outside.
//!
//! Two things must hold whatever happens: a call that waits is answered, and only the kernel ever
//! says what a call results in. The supervisor never answers with a value or an error.
#![deny(unsafe_code)]

mod caller;
pub mod calls;
mod closed;
mod descriptor;
pub mod filter;
mod host;
mod interrupt;
pub mod launch;
mod lead;
pub mod pair;
mod place;
mod proc;
mod process;
mod search;
mod seen;
mod supervisor;
mod table;

pub use filter::Reach;
pub use launch::{Refused, enter, probe};
pub use proc::shows_our_numbers;
