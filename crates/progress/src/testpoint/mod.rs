//! What a polite job links: one call, [`testpoint`], that returns when it is fine to go on.
//!
//! ```no_run
//! let mut hashed = 0.0;
//! for block in std::iter::repeat_n([0u8; 4096], 1000) {
//!     hashed += block.len() as f64; // … the work …
//!     discnice_progress::testpoint::testpoint(0, &[hashed]);
//! }
//! ```
//!
//! Metrics are cumulative counters in any unit: the call computes the progress since the last one.
//! Section 5 of the MS Manners paper says what makes a good metric.
//!
//! Parts: [`crate::model`] decides; [`store`] keeps targets between runs; [`watch`] looks at
//! the machine; [`arbiter`] lets one polite thread of the user run at a time; [`thread`] carries
//! out what was decided. There is no supervisor thread and no superintendent process: each calling
//! thread does its share of their work, so none waits for one that died.
//!
//! Principles: the job's own errors (a NaN, a negative count) and ours (no state directory, a
//! damaged file, no shared memory) never stop it and never end it. It then runs unregulated.

pub mod arbiter;
mod at_exit;
pub mod clock;
mod job;
pub mod store;
pub mod thread;
pub mod watch;

pub use discnice_paths as paths;
pub use job::{NotSet, Settings, configure, flush, notices, set, set_job_name};
pub use thread::{Outcome, set_critical, set_priority, set_resources, testpoint, testpoint_until};
