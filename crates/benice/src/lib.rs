//! BeNice: progress-based regulation of unmodified programs (MS Manners, section 7.2).
//!
//! [`metric`] reads a program's progress from outside, [`tree`] knows which processes belong to it,
//! [`stopper`] stops and continues them, and a [`guardian`] process continues them if the
//! regulator dies. [`regulate()`] is the loop that ties these to `discnice-manners`.
//!
//! Whatever fails here (a metric that vanishes, an endpoint that hangs, a process that may not be
//! stopped), the program goes on unregulated rather than stay stopped.

pub mod guardian;
pub mod metric;
pub mod regulate;
pub mod stopper;
pub mod tree;

pub use metric::{Metric, ParseMetricError};
pub use regulate::{Options, Summary, regulate};
