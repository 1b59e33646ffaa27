//! The ledger of a class: one block of memory that all its processes share.
//!
//! Any member may be killed at any instruction, so nothing here is ever locked: each step is one
//! atomic operation, and a step that is missing costs at most the amount it was about. Whatever
//! is read is treated as a claim, not as a fact: another process of the same user may scribble
//! over the memory, and then a limit may be wrong, but no program may hang or fail.
//!
//! - [`board`]: what the classes of one user know together about the traffic of others;
//! - [`layout`]: the block, field by field, with a version;
//! - [`meter`]: one threshold and what was charged to it;
//! - [`advice`]: what the user's own policy says;
//! - [`fleet`]: this machine's part of a budget that many machines share;
//! - [`recent`]: what passed in each twentieth of a second of the last five seconds;
//! - [`member`]: one process of the class;
//! - [`occupied_slots`]: which member slots are worth a look;
//! - [`waits`]: how long members were held;
//! - [`passed`]: how many calls went on for which reason;
//! - [`trace`]: the last calls of the members, while something reads them;
//! - [`outside`]: what a watcher outside the processes knows of them.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod advice;
#[cfg(not(loom))]
pub mod board;
mod claim;
pub mod fleet;
#[cfg(not(loom))]
pub mod layout;
#[cfg(all(test, loom))]
mod loom;
pub mod member;
pub mod meter;
pub mod occupied_slots;
pub mod outside;
pub mod passed;
pub mod path_shares;
pub mod policy;
pub mod primitive;
pub mod recent;
mod reopened_files;
pub mod token;
pub mod trace;
pub mod uplink;
pub mod waits;

#[cfg(not(loom))]
pub use board::Board;
pub use fleet::Fleet;
#[cfg(not(loom))]
pub use layout::{Class, Direction, Foreign};
pub use member::{Member, MemberId, State};
pub use meter::Meter;
pub use token::Token;
