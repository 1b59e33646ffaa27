//! Information and control that the kernel hides, by the gray-box method
//! (`Information and Control in Gray-Box Systems`, sections 4 and 5).
//!
//! - [`toolbox`] (5): fast timer, incremental statistics, two-cluster split.
//! - [`fccd`] (4.1): which parts of a file are in the page cache.
//! - [`fldc`] (4.2): where files lie on the disk.
//! - [`mac`] (4.3): how much memory is free, and taking it.
//! - [`order`] (4.1.2, 4.2.4): best access order of files and of the parts of a file.
//! - [`input`]: opening what people name.
//! - [`mountinfo`]: paths in the kernel's lists of mounts.
#![deny(unsafe_code)]

pub mod fccd;
pub mod fldc;
pub mod input;
pub mod mac;
pub mod mountinfo;
pub mod order;
pub mod pagecache;
pub mod profile;
pub mod toolbox;
