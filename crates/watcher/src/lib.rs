//! Applies the same limits from outside: to processes that run already, that our library cannot
//! enter (static, Go, musl, setuid-less programs of another linker), or that do I/O which no call
//! shows (page faults, io_uring).
//!
//! *Sample, settle, hold.* The kernel keeps an account of every process (`/proc/PID/io`). What is new
//! in it is charged to the class, in the same shared memory in which preloaded members reserve, and
//! the process stands still until it is paid for. Nothing can be reserved before the fact, so what
//! passes at once is what the process moves between two samples, and one read-ahead window.
//!
//! - [`process`]: which processes may be held, and a hold on the identity of a process;
//! - [`account`]: a process's own I/O, without that of children it has reaped;
//! - [`hold`]: the mechanisms behind one trait, [`hold::Hold`]: ptrace(2), a freezer cgroup, or
//!   stop signals;
//! - [`duty`]: the policy: when to hold and when to let go; times in, decisions out;
//! - [`census`]: new processes in the system;
//! - `debuggers`: which newcomers may be about to trace others;
//! - `births`: parents of processes, as the kernel reports forks;
//! - `kindred`: the class of a newcomer by its ancestry; `number`: the number by which a process
//!   goes in its class;
//! - [`member`]: one process under watch; [`watch`]: a class under watch;
//! - `descriptors`: what another process has open;
//! - `read_ahead`: turns off kernel read-ahead for held processes; `chains`: ends chains of its
//!   windows; `doing`: what calls threads are in; `lead`: how far books may be behind;
//! - `write_back`: writes back steadily what held processes dirtied; `closed`: small files, too;
//!   `paced`: large ones bit by bit;
//! - `made`: counts files that members made;
//! - `detached`: helper processes that end with us, or do at our end what is left to do;
//! - `places`: the disks that members' files lie on; `onlooker`: observations for all classes under
//!   watch;
//! - `served`: writes back what members wrote through daemons (FUSE);
//! - `nameless`: charges what was dirtied in files without a name when it is written;
//! - `uplink`: giving way on the network by the queue that members' connections see;
//! - [`announced`]: wakes the watcher when a member announces itself;
//! - [`reactor`]: sleeping until something is to be done;
//! - [`daemon`]: policyd, which does all this for the classes of a user.
//!
//! Whatever fails here, the program goes on: a watcher that is killed at any instruction leaves
//! nothing held, because the kernel (or a helper process, for cgroups and signals) lets go of it.
#![deny(unsafe_code)]

pub mod account;
pub mod announced;
mod awaited;
mod births;
pub mod census;
mod chains;
mod closed;
pub mod daemon;
mod debuggers;
mod descriptors;
mod detached;
mod doing;
pub mod duty;
mod helpers;
pub mod hold;
mod kindred;
mod lead;
mod made;
pub mod member;
mod nameless;
pub mod number;
pub mod onlooker;
mod orders;
mod paced;
mod places;
pub mod process;
pub mod reactor;
mod read_ahead;
mod served;
mod strangers;
mod uplink;
pub mod watch;
mod write_back;

pub use helpers::Helpers;
pub use process::{Pinned, Refusal, pin};
pub use watch::Watch;
