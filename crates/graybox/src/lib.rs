//! Information and control that the kernel hides, by the gray-box method
//! (`Information and Control in Gray-Box Systems`, sections 4 and 5).
//!
//! - [`toolbox`] (5): fast timer, incremental statistics, two-cluster split.
#![deny(unsafe_code)]

pub mod toolbox;
