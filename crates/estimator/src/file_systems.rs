//! Compares prediction and account for each file system and kind of call (the self-check).

mod made;
mod table;
mod verdict;

use core::sync::atomic::{AtomicI32, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::fuse_reads::InodeTable;

pub use made::{Overhead, TINY};
pub use table::{FILE_SYSTEMS, FileSystems, OTHERS};
use verdict::SILENT;
pub use verdict::{Access, CallKind, Compared, Verdict};

/// Relaxed everywhere: sums, of which nothing else depends.
const R: Ordering = Ordering::Relaxed;

/// Predicted bytes needed to decide whether the account is usable.
const ENOUGH: u64 = 64 << 10;
/// Initial assumption of what a waiting call on names or inodes reads: one block of a directory or
/// inode table.
const BLOCK: u64 = 4096;
/// The unit of accounts.
const SECTOR: u64 = 512;
/// Waits without a byte in the account after which the account counts as silent.
const SILENT_WAITS: u64 = 64;
/// Cost of a wait once the account is silent: the wait is then for a reply of the daemon, which
/// finds most of what it needs in blocks it has already read. So a wait costs a share of a table,
/// an inode with its name (256 and 40 bytes on ext4, 512 on xfs).
const ANSWER: u64 = SECTOR;
/// Cost of a wait where inode tables are known and counted separately: a directory entry. It covers
/// lookups of names that do not exist (Python looks for each imported module under several names).
const NAME: u64 = 64;
/// Divisor of the accumulated error that each wait corrects: 1/2. A wait for a stretch of the inode
/// tables costs thirty times one for a directory, and a program that imports modules makes only
/// dozens of waits. With 1/16 the error left at its end was two or three stretches; with 1/2 it is
/// less than one.
const CORRECTED: u64 = 2;

/// Sums of one kind of call.
#[derive(Debug, Default)]
#[repr(C)]
struct Tally {
    predicted: AtomicU64,
    account: AtomicU64,
    credited: AtomicU64,
}

impl Tally {
    fn compared(&self) -> Compared {
        Compared {
            predicted: self.predicted.load(R),
            account: self.account.load(R),
            credited: self.credited.load(R),
        }
    }
}

/// One file system.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct FileSystem {
    /// `st_dev` plus one; zero while free.
    device: AtomicU64,
    /// What calibration found: a [`Verdict`].
    calibrated: AtomicU32,
    /// How often calls on names and inodes waited.
    waits: AtomicU32,
    tallies: [Tally; CallKind::ALL.len()],
    /// Files that were made and not deleted before they were written.
    creations: AtomicU32,
    /// What calibration found that one costs the disk: [`Overhead`].
    beside_data: AtomicU32,
    beside_account: AtomicU32,
    /// For a file system that a daemon serves: pages of the read-ahead window of the disk below,
    /// plus one.
    served: AtomicU32,
    /// [`InodeTable`] of the file system below.
    inodes_per_page: AtomicU16,
    inode_stretch: AtomicU16,
    /// The rest of what calibration found: [`Overhead`].
    once: AtomicU32,
    /// One once any file was made, whatever became of it.
    made: AtomicU32,
    /// Pages that a page fault reads around itself, where its device number does not tell; zero where not known.
    around: AtomicU32,
    /// [`Substance`]: says if the file system lies in memory alone; zero until asked.
    substance: AtomicU32,
    /// Created files that were tiny when they were closed.
    tinies: AtomicU32,
    /// Difference in disk cost between a tiny file and any other, in bytes; zero if negligible.
    tiny_more: AtomicI32,
    /// One once the kernel has told of dirty pages here.
    tells_dirty: AtomicU32,
}

/// What the files of a file system lie on, as stored.
#[repr(u32)]
enum Substance {
    Disk = 1,
    Memory = 2,
}

impl FileSystem {
    /// Returns how many pages are still dirty of `believed`, of which the kernel says that `told` are. A stacked file
    /// system tells of none, nor does one that a daemon serves; so until some were seen nothing is believed.
    #[must_use]
    pub fn still_dirty(&self, believed: u64, told: Option<u64>) -> u64 {
        match told {
            Some(dirty) if dirty > 0 => {
                self.tells_dirty.store(1, R);
                dirty.min(believed)
            }
            Some(_) if self.tells_dirty.load(R) != 0 => 0,
            _ => believed,
        }
    }

    /// `st_dev` of stat(2); `None` for a free slot or the one that stands for all others.
    #[must_use]
    pub fn device(&self) -> Option<u64> {
        self.device.load(R).checked_sub(1)
    }

    fn tally(&self, kind: CallKind) -> Option<&Tally> {
        self.tallies.get(kind as usize)
    }

    /// Sums of one kind of call.
    #[must_use]
    pub fn compared(&self, kind: CallKind) -> Compared {
        self.tally(kind).map(Tally::compared).unwrap_or_default()
    }

    /// Sums of all.
    #[must_use]
    pub fn total(&self) -> Compared {
        self.tallies.iter().fold(Compared::default(), |sum, tally| sum.plus(tally.compared()))
    }

    /// Adds what a call was predicted to cost and what was charged since the last look.
    pub fn note(&self, kind: CallKind, predicted: u64, account: u64) {
        let Some(tally) = self.tally(kind) else { return };
        if predicted > 0 {
            tally.predicted.fetch_add(predicted, R);
        }
        if account > 0 {
            tally.account.fetch_add(account, R);
        }
    }

    /// What a call on names or inodes is predicted to have read that waited `waits` times.
    ///
    /// What one wait stands for, a directory's block or a stretch of the inode tables, only the file
    /// system knows: it is what a wait has cost on average, and a part of what was predicted too little
    /// or too much so far. Where the account is silent, it is an inode's share of a block.
    #[must_use]
    pub fn waited(&self, waits: u32, access: Access) -> u64 {
        if waits == 0 || access == Access::Counted {
            return 0;
        }
        // A count that began anew would make each later wait as expensive as all before it.
        let counted = self.waits.fetch_update(R, R, |before| Some(before.saturating_add(waits)));
        let before = counted.unwrap_or_else(|before| before);
        let Compared { predicted, account, .. } = self.compared(CallKind::Metadata);
        let each = match account.checked_div(before.into()) {
            Some(mean) if account > 0 => {
                let owed = account.saturating_sub(predicted) / CORRECTED;
                let surplus = predicted.saturating_sub(account) / CORRECTED;
                mean.saturating_add(owed).saturating_sub(surplus)
            }
            _ if access == Access::Looks && self.inode_table() != InodeTable::default() => NAME,
            _ if u64::from(before) >= SILENT_WAITS => match access {
                Access::Looks => ANSWER,
                Access::Changes | Access::Counted => 0,
            },
            _ => BLOCK,
        };
        each.saturating_mul(waits.into())
    }

    /// Takes back what will not be written.
    pub fn credit(&self, kind: CallKind, bytes: u64) {
        if let Some(tally) = self.tally(kind) {
            tally.credited.fetch_add(bytes, R);
        }
    }

    /// Notes what calibration found.
    pub fn calibrate(&self, verdict: Verdict) {
        self.calibrated.store(verdict as u32, R);
    }

    /// A daemon serves it, which reads from a disk with a read-ahead window of so many pages, and inodes from
    /// such a table.
    pub fn serve(&self, window: u32, table: InodeTable) {
        self.set_inode_table(table);
        self.served.store(window.saturating_add(1), R);
    }

    /// Returns the read-ahead window, in pages, of the disk that this file system's daemon reads
    /// from; `None` if the kernel itself reads the files.
    #[must_use]
    pub fn served(&self) -> Option<u64> {
        u64::from(self.served.load(R)).checked_sub(1)
    }

    /// Returns true if the file system lies in memory alone (tmpfs), so that no disk I/O is
    /// predicted for it. `ask` is called once.
    pub fn is_in_memory(&self, ask: impl FnOnce() -> bool) -> bool {
        match self.substance.load(R) {
            0 => {
                let answer = ask();
                let found = if answer { Substance::Memory } else { Substance::Disk };
                // What stands for all others is none of them.
                if self.device().is_some() {
                    self.substance.store(found as u32, R);
                }
                answer
            }
            known => known == Substance::Memory as u32,
        }
    }

    /// A page fault reads so many pages around itself, which the device number of files does not tell (btrfs,
    /// overlayfs).
    pub fn set_read_around(&self, pages: u32) {
        self.around.store(pages, R);
    }

    /// What was set so; `None` if nothing was.
    #[must_use]
    pub fn read_around(&self) -> Option<u64> {
        Some(u64::from(self.around.load(R))).filter(|pages| *pages > 0)
    }

    /// Sets the table from which inodes are read that calls on names look up. In the slot that
    /// stands for all others: the table of some file system that a daemon serves.
    pub fn set_inode_table(&self, table: InodeTable) {
        self.inodes_per_page.store(table.inodes_per_page, R);
        self.inode_stretch.store(table.stretch, R);
    }

    /// How the file system that the daemon reads from keeps its inodes.
    #[must_use]
    pub fn inode_table(&self) -> InodeTable {
        InodeTable {
            inodes_per_page: self.inodes_per_page.load(R),
            stretch: self.inode_stretch.load(R),
        }
    }

    /// Returns the verdict on the account: by reads, which cost the disk at once, or, before there
    /// have been enough of them, by calibration.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let reads = self.compared(CallKind::Read);
        if reads.predicted < ENOUGH {
            return match self.calibrated.load(R) {
                1 => Verdict::Accounted,
                2 => Verdict::Silent,
                _ => Verdict::Undecided,
            };
        }
        let silent = reads.account < reads.predicted / SILENT;
        if silent { Verdict::Silent } else { Verdict::Accounted }
    }
}

#[cfg(test)]
mod tests;
