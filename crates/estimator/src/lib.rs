//! Predicts what a call will do to the disk (DiscNice, sections 4.2 to 4.4 and 5.2 to 5.5).
//!
//! The disk is a gray box: a call's disk I/O differs from its file I/O by what the page cache
//! holds, by rounding to pages, by read-ahead and by delayed writing. Each difference has its part
//! here, and each can be switched off alone ([`Modules`], the paper's table 5):
//!
//! | part | the paper's name | what it answers |
//! |---|---|---|
//! | [`cache`] | cache detector, 4.2 | how many pages of this range are not in the page cache? |
//! | [`faults`] | mmap, 5.5 | what have page faults on another user's file read? |
//! | [`blocks`] | read-size predictor, 4.3 | which pages does a call touch? |
//! | [`regions`] | write-size predictor, 4.4 | which of these pages are dirty already? |
//! | [`fuse_reads`] | read-ahead, 4.3 | what does the disk read for a daemon that reads for us (FUSE)? |
//! | [`file_systems`] | self-check | how do prediction and account compare, for each file system? |
//!
//! The paper emulates the kernel's read-ahead. Since it became as adaptive as it is now, no
//! emulation follows it for long; so the regulator switches it off and reads ahead itself, and a
//! prediction is what is asked for, less what is there.
//!
//! Principles:
//! - a prediction may be wrong, and then costs accuracy until it is corrected; it never changes
//!   what a program sees;
//! - nothing here knows Linux: what must be asked of the system is the trait [`System`];
//! - state shared by several processes consists of atomic integers that are valid with any content,
//!   and each step is one atomic operation, so a killed process leaves no lock behind.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod blocks;
pub mod cache;
pub mod faults;
pub mod file_systems;
pub mod fuse_reads;
mod modules;
mod readahead;
pub mod regions;
mod shared;
mod system;
#[cfg(test)]
mod tests;

pub use file_systems::{Access, CallKind, FileSystem, FileSystems, Overhead, Verdict};
pub use modules::{Estimator, Modules};
pub use shared::{Estimation, Totals};
pub use system::{Counts, Probed, Refusal, System};
