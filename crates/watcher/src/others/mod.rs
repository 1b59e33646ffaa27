//! What others do on the same disks and uplinks.
//!
//! - [`observer`]: observations for all classes under watch;
//! - `waiting_tasks`: tasks of no class that wait for a disk;
//! - `disks`: the disks that the files of a process lie on;
//! - `uplink`: giving way on the network by the queue that members' connections see.

pub(crate) mod disks;
pub mod observer;
pub(crate) mod uplink;
mod waiting_tasks;
