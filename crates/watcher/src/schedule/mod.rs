//! When a process is looked at, for how long it is stopped, and sleeping until something is due.
//!
//! - [`stops`]: when a process is stopped, continued and looked at; times in, decisions out;
//! - [`reactor`]: sleeping until something is to be done.

pub mod reactor;
pub mod stops;
