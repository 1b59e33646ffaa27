//! File layout detector and controller (section 4.2): where files lie on the disk, and putting
//! them there in a better order.
//!
//! Where the file system tells physical extents (FIEMAP) they are the layout; elsewhere the
//! inode number is the paper's guess.

mod fiemap;
pub mod refresh;

use std::fs::File;

pub use fiemap::{Extent, extents, first_extent};

use crate::input::Facts;

/// Sorts files as they lie on the disk: by device, then those without a known place (empty, kept
/// inside the inode, not yet written, or on a file system that does not tell) by inode number,
/// then by the physical place of the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Device of the file system.
    pub dev: u64,
    /// Physical byte address of the first extent.
    pub physical: Option<u64>,
    /// Inode number.
    pub ino: u64,
}

//= gray-box/4.2.1-order
/// Returns the place of a file on the disk.
#[must_use]
pub fn place(file: &File, facts: &Facts) -> Place {
    Place { dev: facts.dev, physical: first_extent(file), ino: facts.ino }
}
