//! Which processes belong to a class.
//!
//! - [`census`]: new processes in the system;
//! - [`newcomer`]: one of them, and what it shows of its classes;
//! - `fork_events`: parents of processes, as the kernel reports forks;
//! - `lineage`: the class of a new process by its ancestry;
//! - `roll_call`: when all slots of a class are looked through;
//! - [`pid_namespace`]: the number by which a process goes in its class;
//! - [`announcements`]: wakes the watcher when a member announces itself.

pub mod announcements;
pub mod census;
pub(crate) mod fork_events;
pub(crate) mod lineage;
pub mod newcomer;
pub mod pid_namespace;
pub(crate) mod roll_call;
