//! When a process is looked at, for how long it is stopped, and sleeping until something is due.
//!
//! - [`stops`]: when a process is stopped, continued and looked at; times in, decisions out;
//! - `queue`: what is due next;
//! - [`beats`]: times at which what is not urgent is done together;
//! - [`crowd`]: looks at the idle processes of a crowd;
//! - `unseen`: looks at processes that cannot be looked at yet;
//! - [`reactor`]: sleeping until something is to be done.

pub mod beats;
pub mod crowd;
pub(crate) mod queue;
pub mod reactor;
pub mod stops;
pub(crate) mod unseen;
