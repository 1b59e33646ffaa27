//! What a process moved, and what of it is charged when.
//!
//! - `own_account`: the I/O of a process without that of the children that it reaped;
//! - `proc_io`: what the kernel accounts, as `/proc/PID/io` shows it;
//! - `created_files`: files that members created, which the kernel charges to no process;
//! - `unlinked_files`: what is dirty in files without a name is charged when it is written;
//! - `allowed_lead`: how far the account of a preloaded process may be ahead of its books;
//! - `unseen_io`: whether a process does I/O where no call stands for it.

pub(crate) mod allowed_lead;
pub(crate) mod created_files;
mod own_account;
mod proc_io;
pub(crate) mod unlinked_files;
mod unseen_io;

pub use own_account::{OwnAccount, Rest};
pub use proc_io::{Io, threads};
