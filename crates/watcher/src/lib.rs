//! Applies the same limits from outside: to processes that run already, that our library cannot
//! enter (static, Go, musl, setuid-less programs of another linker), or that do I/O which no call
//! shows (page faults, io_uring).
//!
//! *Sample, settle, hold.* The kernel keeps an account of every process (`/proc/PID/io`). What is new
//! in it is charged to the class, in the same shared memory in which preloaded members reserve, and
//! the process stands still until it is paid for. Nothing can be reserved before the fact, so what
//! passes at once is what the process moves between two samples, and one read-ahead window.
//!
//! - [`watch`]: a class under watch; [`member`]: one process under watch;
//! - [`discovery`]: which processes belong to a class;
//! - [`accounting`]: what a process moved, and what of it is charged when;
//! - [`holding`]: how a process is stopped and continued;
//! - [`schedule`]: when a process is looked at, for how long it is stopped, and sleeping until something is due;
//! - [`network`]: what members move over TCP connections, where no library sees it, and giving way there;
//! - `writeback`: writes back steadily what held processes dirtied;
//! - `read_ahead`: turns off kernel read-ahead for held processes;
//! - [`tuning`]: every amount and time that tunes this;
//! - [`others`]: what others do on the same disks;
//! - [`process`]: the identity of a process, and what `/proc` says of it;
//! - `helpers`, `helper_process`: processes that end with us, or do at our end what is left to do;
//! - [`daemon`]: policyd, which does all this for the classes of a user.
//!
//! Whatever fails here, the program goes on: a watcher that is killed at any instruction leaves
//! nothing held, because the kernel (or a helper process, for cgroups and signals) lets go of it.
#![deny(unsafe_code)]

pub mod accounting;
pub mod daemon;
pub mod discovery;
mod helper_process;
mod helpers;
pub mod holding;
pub mod member;
pub mod network;
pub mod others;
pub mod process;
mod read_ahead;
pub mod schedule;
pub mod tuning;
pub mod watch;
mod writeback;

pub use helpers::Helpers;
pub use process::{Pinned, Refusal, pin};
pub use watch::Watch;
