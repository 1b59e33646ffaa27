//! Protection of the page cache: what a class reads into it leaves with it, and what was there before stays.
//!
//! A backup reads each file once. Left alone it fills the page cache with them, and what the user's programs had there is gone
//! in the morning. So a file of which nothing is cached when a member opens it is dropped from the cache when that descriptor is
//! closed, a large one portion by portion while it is read. A file that the class opens again soon (a compiler's headers) is
//! part of its working set and stays. Where the kernel does not tell what is cached (before Linux 6.5, other users' files)
//! nothing is dropped.

use discnice_estimator::regions::FileKey;

use crate::host::Host;
use crate::{File, Regulator};

/// Bytes that are dropped together while a file is read.
const PORTION: u64 = 8 << 20;

/// Portions that end before `end`, but for the last.
const fn behind(end: u64) -> u64 {
    (end / PORTION).saturating_sub(1)
}

impl File {
    /// Returns true if something of the file is to leave the page cache once a read has ended at `end`.
    #[must_use]
    pub fn leaves_behind(&self, end: u64) -> bool {
        self.is_foreign_to_cache() && self.dropped() < behind(end)
    }
}

impl<H: Host> Regulator<'_, H> {
    /// Looks at a file that the program has just opened to read it, in a class that protects the page cache.
    pub fn opened_to_read(&self, fd: i32, file: &File) {
        // The first question is all that a file costs that is cached.
        if !self.host.is_uncached(fd) {
            return;
        }
        let Some(status) = self.host.status(fd).filter(|status| status.regular && status.disk)
        else {
            return;
        };
        let key = FileKey::new(status.device, status.inode).get();
        if status.size > 0 && !self.class.has_seen(key) && !self.host.is_stacked(fd) {
            file.set_foreign_to_cache();
        }
    }

    /// Drops the portions that end before `end`, but for the last.
    pub(crate) fn drop_behind(&self, fd: i32, file: &File, end: u64) {
        let portions = behind(end);
        let dropped = file.raise_dropped(portions);
        if dropped < portions {
            self.host.drop_cached(fd, dropped * PORTION, (portions - dropped) * PORTION);
        }
    }

    //= gray-box/6-interposition
    /// Drops all that was read of a file, if it is to leave the cache: it is about to be closed.
    pub fn leave_cache(&self, fd: i32, file: &File) {
        if file.is_foreign_to_cache() {
            self.host.drop_cached(fd, 0, 0);
        }
    }
}
