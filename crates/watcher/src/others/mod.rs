//! What others do on the same disks.
//!
//! - [`observer`]: observations for all classes under watch;
//! - `requests`: how large requests of each disk are;
//! - `waiting_tasks`: tasks of no class that wait for a disk;
//! - `disks`: the disks that the files of a process lie on;
//! - `elsewhere`: whether a process reads on others than these;

pub(crate) mod disks;
mod elsewhere;
pub mod observer;
mod requests;
mod waiting_tasks;
