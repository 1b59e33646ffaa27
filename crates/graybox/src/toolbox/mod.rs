//! The gray toolbox (section 5): what every layer needs to measure and to interpret.

mod cluster;
mod stats;
mod timer;

pub use cluster::{Split, split};
pub use stats::{Correlation, Median, Stats, discard_outliers, median_of};
pub use timer::Timer;
