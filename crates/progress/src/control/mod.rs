//! BeNice: progress-based regulation of unmodified programs (MS Manners, section 7.2).
//!
//! [`metric`] reads a program's progress from outside, [`phase`] tells which phase it is in, the crate
//! `discnice-processes` knows which processes belong to it, stops and continues them, also if the regulator dies.
//! [`regulate()`] is the loop that ties these to
//! [`model`](crate::model). [`launch`] starts it for a process that is about to become the job.
//! [`report`] is what other programs may know of it.
//!
//! Whatever fails here (a metric that vanishes, an endpoint that hangs, a process that may not be
//! stopped), the program goes on unregulated rather than stay stopped.

mod false_progress;
mod job_identity;
mod kept_targets;
pub mod launch;
mod lock_waiters;
pub mod metric;
mod options;
pub mod phase;
pub mod regulate;
pub mod report;
mod summary;
mod usage;

pub use metric::{Metric, ParseMetricError};
pub use options::RegulatorOptions;
pub use phase::Phases;
pub use regulate::{Outside, regulate};
pub use summary::Summary;
