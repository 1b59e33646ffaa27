//! Process trees: which processes belong to a job, how they are stopped and continued, and helper processes that undo
//! it if their parent is killed.
//!
//! - [`tree`]: the processes of a job, and whether a PID still means the same process;
//! - [`fork`]: helper processes: children without exec that outlive or accompany their parent;
//! - [`guardian`]: a helper that continues what a killed process had stopped;
//! - [`hold_record`]: what is held, for the case that both are killed;
//! - `stop_signal`: stops and continues one process, and keeps the stops of others;
//! - [`stopper`]: stops and continues the processes of a tree;
//! - [`wishes`]: signals that ask a process to end, or to stop.

pub mod fork;
pub mod guardian;
pub mod hold_record;
mod stop_signal;
pub mod stopper;
pub mod tree;
pub mod wishes;

pub use stopper::Stopper;
