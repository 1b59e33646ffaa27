//! Files that were made, and what they cost the disk besides.

use core::sync::atomic::AtomicU32;

use super::{FileSystem, R};

/// A file of at most so many bytes is tiny: btrfs keeps it in its trees (`max_inline`, btrfs(5)), and never writes the page
/// that was dirtied, which the account and predictions have.
pub const TINY: u64 = 2048;
/// Difference in bytes, a quarter of that page, from which on created files are asked for their
/// size when they are closed. Less is noise.
const MARKED: u32 = 1024;

/// What a file system writes for each small file that is made, besides its data: journal, inode tables,
/// directories, allocation maps; in bytes. As calibration found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overhead {
    /// All of it.
    pub beside_data: u32,
    /// What no process was charged for.
    pub beside_account: u32,
    /// What making the first one costs besides: a transaction with its superblocks and copies of trees.
    pub once: u32,
    /// All of it of a tiny one ([`TINY`]), beside the page that it dirties: below zero where that is never written.
    /// `None`: as of any.
    pub tiny_beside_data: Option<i32>,
}

impl FileSystem {
    /// Notes what calibration found that making a file costs.
    pub fn set_overhead(&self, found: Overhead) {
        let Overhead { beside_data, beside_account, once, tiny_beside_data } = found;
        let usual = i32::try_from(beside_data).unwrap_or(i32::MAX);
        let more = tiny_beside_data.map_or(0, |tiny| tiny.saturating_sub(usual));
        self.tiny_more.store(if more.unsigned_abs() >= MARKED { more } else { 0 }, R);
        self.once.store(once, R);
        self.beside_data.store(beside_data, R);
        self.beside_account.store(beside_account, R);
    }

    /// Counts a created file. Returns the bytes of its metadata that appear in an account (btrfs
    /// charges its trees to the process that dirties them), which a prediction of the account must
    /// include.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.made.store(1, R);
        self.creations.fetch_add(1, R);
        self.charged_for_metadata()
    }

    /// Counts files, and of these the tiny ones, that were made by processes watched from outside;
    /// these are charged what the account has.
    pub fn made_outside(&self, files: u64, tinies: u64) {
        self.made.store(1, R);
        for (counter, more) in [(&self.creations, files), (&self.tinies, tinies)] {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let _ = counter.fetch_update(R, R, |count| Some(count.saturating_add(more)));
        }
    }

    /// A file that was made is gone, and was never written: its name and inode are not, either. Returns what
    /// [`FileSystem::created`] did.
    #[must_use]
    pub fn uncreated(&self) -> u64 {
        let known = self.creations.fetch_update(R, R, |count| count.checked_sub(1));
        known.map_or(0, |_| self.charged_for_metadata())
    }

    /// Returns true if tiny files differ in cost from others, so that they must be counted.
    #[must_use]
    pub fn minds_tiny(&self) -> bool {
        self.tiny_more.load(R) != 0
    }

    /// Notes that one of the created files is tiny.
    pub fn made_tiny(&self) {
        self.tinies.fetch_add(1, R);
    }

    fn charged_for_metadata(&self) -> u64 {
        self.beside_data.load(R).saturating_sub(self.beside_account.load(R)).into()
    }

    /// What the files made so far have cost the disk that no prediction of calls counts: beside the data
    /// that was predicted, and beside what the kernel charged, a page of a tiny one in both. In bytes.
    #[must_use]
    pub fn overhead(&self) -> (u64, u64) {
        let made = u64::from(self.creations.load(R));
        // Names that came and went are a transaction as well.
        let once = if self.made.load(R) != 0 { self.once.load(R).into() } else { 0 };
        // Of files deleted since, it is not known which were tiny.
        let tinies = self.tinies.load(R).min(self.creations.load(R));
        let more = i64::from(tinies).saturating_mul(self.tiny_more.load(R).into());
        let cost = |each: &AtomicU32| {
            let all = made.saturating_mul(each.load(R).into());
            all.saturating_add_signed(more).saturating_add(once)
        };
        (cost(&self.beside_data), cost(&self.beside_account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_cost_more_than_their_data() {
        let fs = FileSystem::default();
        assert_eq!(fs.uncreated(), 0);
        (0..10).for_each(|_| assert_eq!(fs.created(), 0));
        assert_eq!(fs.overhead(), (0, 0), "never calibrated");
        let found = Overhead {
            beside_data: 3000,
            beside_account: 1000,
            once: 100_000,
            ..Overhead::default()
        };
        fs.set_overhead(found);
        assert_eq!(fs.uncreated(), 2000, "as it was charged");
        assert_eq!(fs.overhead(), (127_000, 109_000));
        (0..9).for_each(|_| assert_eq!(fs.uncreated(), 2000));
        assert_eq!(fs.overhead(), (100_000, 100_000), "names came and went");
        assert_eq!((fs.uncreated(), fs.created()), (0, 2000));
        assert_eq!(size_of::<FileSystem>(), 192, "a part of the class's layout");
    }

    #[test]
    fn tiny_files_cost_less_where_they_are_kept_in_trees() {
        let fs = FileSystem::default();
        let found = Overhead { beside_data: 3000, beside_account: 1000, ..Overhead::default() };
        for tiny in [None, Some(3000), Some(2000), Some(3000 + MARKED as i32 - 1)] {
            fs.set_overhead(Overhead { tiny_beside_data: tiny, ..found });
            assert!(!fs.minds_tiny(), "{tiny:?}");
        }
        fs.set_overhead(Overhead { tiny_beside_data: Some(500), ..found });
        assert!(fs.minds_tiny());
        (0..10).for_each(|_| assert_eq!(fs.created(), 2000));
        assert_eq!(fs.overhead(), (30_000, 10_000));
        (0..2).for_each(|_| fs.made_tiny());
        assert_eq!(fs.overhead(), (25_000, 5000));
        (0..4).for_each(|_| fs.made_tiny());
        assert_eq!(fs.overhead(), (15_000, 0), "nothing is written less than not at all");
        (0..9).for_each(|_| assert_eq!(fs.uncreated(), 2000));
        assert_eq!(fs.overhead(), (500, 0), "there are no more tiny files than files");
        fs.set_overhead(Overhead { tiny_beside_data: Some(6000), ..found });
        assert_eq!(fs.overhead(), (6000, 4000), "they may cost more as well");
        for tiny in [i32::MIN, i32::MAX] {
            let most = Overhead { beside_data: u32::MAX, tiny_beside_data: Some(tiny), ..found };
            fs.set_overhead(most);
            let _ = fs.overhead();
        }
    }
}
