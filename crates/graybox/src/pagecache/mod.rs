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

mod oracle;
mod probe;

pub use discnice_sys::Errno;
pub use discnice_sys::pagecache::{Counts, cachestat, mincore, mincore_is_honest, page_size};
pub use discnice_sys::residency::{FAULT_AROUND, Seen, look};
pub use oracle::{Means, Oracle};
pub use probe::{Probe, probe};

/// The size of a regular file in bytes.
///
/// # Errors
/// As fstat(2).
pub fn file_size(fd: i32) -> Result<u64, Errno> {
    discnice_sys::file::status(fd).map(|status| status.size)
}
