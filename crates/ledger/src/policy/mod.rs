//! Regulation as arithmetic: times and amounts in, delays out.
//!
//! Nothing here knows a clock, a system call or shared memory, so all of it is tested with
//! simulated time:
//! - [`contract`]: what a policy is;
//! - [`choice`]: which ones there are;
//! - [`sleep`]: the sleep of B/R - N (DiscNice, 5.3);
//! - [`pace`]: the rate window (Rate Windows, 3.2) that says when the next amount may pass;
//! - [`resource`]: what can be limited;
//! - [`throttle`]: the throttled state, with hysteresis;
//! - [`condition`]: what a job may wait for before it goes on;
//! - [`delay`]: giving way on a network by the queue that is seen;
//! - [`linger`]: is it worth moving a job to another machine? (Rate Windows, 8);
//! - [`memory`]: when a class is paused so that its pages are reclaimed;
//! - [`limits`]: what a class is allowed;
//! - [`contradiction`]: which combinations of that contradict themselves.
//!
//! How a job is made to wait is not decided here; that is a mechanism's business.
#![forbid(unsafe_code)]

pub mod choice;
pub mod condition;
pub mod contract;
pub mod contradiction;
pub mod delay;
pub mod limits;
pub mod linger;
pub mod memory;
pub mod occupancy;
pub mod pace;
pub mod resource;
pub mod sleep;
pub mod throttle;

pub use choice::{Choice, Pace};
pub use condition::{Condition, Conditions};
pub use contract::{Past, Policy, Reservation};
pub use contradiction::Contradiction;
pub use delay::Delay;
pub use limits::{Limits, When};
pub use memory::Memory;
pub use pace::Rule;
pub use resource::{Resource, Resources};
pub use sleep::Sleep;
