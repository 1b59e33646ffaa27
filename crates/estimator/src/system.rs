//! What the estimator asks of the system.

/// What is in the page cache of a range, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// There, or on the way.
    pub cached: u64,
    /// Changed and not yet on the way to the disk.
    pub dirty: u64,
}

/// What probing a range found, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probed {
    /// Were there.
    pub cached: u64,
    /// Were not, and have been read by the probes.
    pub read: u64,
}

/// Why the system does not tell what the cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The system tells only the file's owner and users with write access.
    Foreign,
    /// The system has no such call, or does not support it for this file.
    Unsupported,
}

//= discnice/4.2-probe
/// The questions. None of them may change what the program sees; each is about a descriptor that
/// the program may close or replace at any moment. Lengths are in bytes and never 0.
pub trait System {
    /// What the cache holds of a range: cachestat(2).
    ///
    /// # Errors
    /// Why it is not told. A stacked file system may answer about an inode that caches nothing.
    fn count(&self, fd: i32, offset: u64, length: u64) -> Result<Counts, Refusal>;

    /// Pages of a range that mincore(2) sees; `None` where it does not tell us the truth.
    fn resident(&self, fd: i32, offset: u64, length: u64) -> Option<u64>;

    /// Counts which pages of a range were cached, by touching one page in each of its windows; a
    /// page that was not cached is thereby read. May stop at the first window that misses and count
    /// the rest as uncached. `None` if the file cannot be mapped.
    fn probe(&self, fd: i32, offset: u64, length: u64) -> Option<Probed>;
}
