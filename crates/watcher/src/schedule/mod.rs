//! When a process is looked at, for how long it is stopped, and sleeping until something is due.
//!
//! - [`duty`]: when to hold a process and when to let it go; times in, decisions out;
//! - [`reactor`]: sleeping until something is to be done.

pub mod duty;
pub mod reactor;
