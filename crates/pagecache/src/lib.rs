//! Is this range of a file in the page cache, and how do we know?
//!
//! Three means, from the most to the least exact (gray-box paper, section 4.1):
//!
//! | means     | exact | disturbs the cache | lies when                                          |
//! |-----------|-------|--------------------|----------------------------------------------------|
//! | cachestat | yes   | no                 | stacked file systems: asks the wrong inode, says 0 |
//! | mincore   | yes   | no                 | foreign files: says that everything is resident    |
//! | probe     | no    | one page a miss    | never, but speaks for one page only                |
//!
//! [`Oracle`] knows which of the first two tells the truth about *this* descriptor and uses no
//! other; [`mod@probe`] is the caller's to use, because it costs I/O. The decision rests on what the
//! kernel answers for the descriptor, never on a list of file systems.
//!
//! The crate may be linked into the preload library: no allocation, no panic, at most 1 KiB of
//! stack, no_std.
#![cfg_attr(not(test), no_std)]

mod oracle;
mod probe;
mod raw;

pub use oracle::{Means, Oracle};
pub use probe::{Probe, probe};
pub use raw::{Counts, Usage, cachestat, file_size, mincore, mincore_is_honest, page_size, usage};

/// An error number of errno(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "errno {}", self.0)
    }
}

impl core::error::Error for Errno {}
