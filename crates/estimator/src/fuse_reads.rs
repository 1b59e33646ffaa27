//! Predicts what a disk reads below a file system when a daemon reads its files for us (FUSE).
//!
//! There are two page caches: that of the mounted file system, which can be queried, and below it
//! that of the file system the daemon reads from, which cannot. A page missing from the first costs
//! the disk nothing if the daemon has already read or written it, and more than one page if the
//! kernel reads ahead for the daemon. Our advice does not reach the daemon's descriptor, so the
//! read-ahead is emulated here, as in the paper (4.3 and 5.4), for the daemon's requests: these are
//! short and, when they are not sequential, exactly what the program asked for.
//!
//! For each file we remember which pages must be in the daemon's cache and the read-ahead state of
//! the descriptor opened last. Both cover only what this class has caused: what was cached earlier
//! is unknown, and so is what has been evicted since.

use core::sync::atomic::{AtomicU64, Ordering};

use discnice_units::Moment;

use crate::blocks::{PAGE, Pages};
use crate::readahead::{Cache, ReadAhead, WORDS};
use crate::regions::{FileKey, UpdateRegions};

/// Relaxed everywhere: hints.
const R: Ordering = Ordering::Relaxed;

/// Files with read-ahead state that is tracked at once.
const FILES: usize = 1 << 10;
/// Read-ahead marks in the daemon's cache that are remembered, for all files together.
const MARKS: usize = 1 << 12;
/// Longest request that a daemon receives, in pages: FUSE's own read-ahead, 128 KiB.
const REQUEST: u64 = 32;
/// Length in pages (64 MiB) from which a hole before a write is left out; object files have none as
/// long.
const HOLE: u64 = 1 << 14;
/// Timestamp for cached pages, which, unlike dirty ones, do not expire.
const ALWAYS: Moment = Moment(1);
/// Longest read that is tracked page by page, in pages: 1 GiB.
const FOLLOWED: u64 = 1 << 18;

/// Read-ahead state of one file.
#[derive(Debug)]
#[repr(C, align(64))]
struct Slot {
    key: AtomicU64,
    state: [AtomicU64; WORDS],
}

impl Slot {
    const fn new() -> Self {
        Self { key: AtomicU64::new(0), state: [const { AtomicU64::new(0) }; WORDS] }
    }
}

/// Read-ahead state and cached pages of all files that the class reads through a daemon. All zeroes
/// is a valid empty value.
#[derive(Debug)]
#[repr(C)]
pub struct Behind {
    slots: [Slot; FILES],
    marks: [AtomicU64; MARKS],
    cached: UpdateRegions,
}

impl Default for Behind {
    fn default() -> Self {
        Self::new()
    }
}

/// A file as the daemon sees it.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// Device and inode of the file.
    pub key: FileKey,
    /// Its size in bytes.
    pub size: u64,
    /// The read-ahead window of the disk below, in pages.
    pub window: u64,
}

/// How the file system that a daemon reads from keeps its inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InodeTable {
    /// Inodes in one page.
    pub inodes_per_page: u16,
    /// Pages that are read together; zero if unknown.
    pub stretch: u16,
}

impl InodeTable {
    /// Returns the table of a file system that has one, assuming mkfs's default inode size. The
    /// stretch is what the kernel reads for one inode. ext4: fs/ext4/inode.c,
    /// `inode_readahead_blks`, 32 aligned pages (and the one after them); xfs:
    /// `inode_cluster_size`, 16 KiB.
    #[must_use]
    pub fn of(file_system: &str) -> Self {
        match file_system {
            "ext4" => Self { inodes_per_page: 16, stretch: 32 },
            "xfs" => Self { inodes_per_page: 8, stretch: 4 },
            _ => Self::default(),
        }
    }

    /// Returns the pages of the table that are read for an inode.
    fn read_for(self, inode: u64) -> Pages {
        let page = inode.checked_div(self.inodes_per_page.into()).unwrap_or(0);
        let stretch = u64::from(self.stretch);
        let first = page.checked_div(stretch).unwrap_or(0).saturating_mul(stretch);
        Pages { first, end: first.saturating_add(stretch) }
    }
}

impl Behind {
    /// Creates an empty value, with nothing known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; FILES],
            marks: [const { AtomicU64::new(0) }; MARKS],
            cached: UpdateRegions::new(),
        }
    }

    /// Notes that the file was opened, and thus opened by the daemon too: the new descriptor has
    /// read-ahead state of its own, but the marks in the cache belong to the file.
    pub fn opened(&self, key: FileKey) {
        if let Some(slot) = self.slot(key)
            && let Some(ahead) = load(slot, key)
        {
            store(slot, key, ahead.of_another_descriptor());
        }
    }

    //= discnice/4.3-size
    /// Notes that these pages are requested from the daemon; returns how many of them the disk
    /// reads.
    pub fn read(&self, file: Served, asked: Pages) -> u64 {
        let size = file.size.div_ceil(PAGE);
        let end = asked.end.min(size);
        let first = asked.first.max(end.saturating_sub(FOLLOWED));
        let cache = Own { behind: self, key: file.key };
        let slot = self.slot(file.key);
        let mut ahead = slot.and_then(|slot| load(slot, file.key)).unwrap_or_default();
        let mut read = Pages { first: asked.first, end: first }.count();
        let mut at = first;
        while at < end {
            let request = Pages { first: at, end: at.saturating_add(REQUEST).min(end) };
            read = read.saturating_add(ahead.request(&cache, request, file.size, file.window));
            at = request.end;
        }
        if let Some(slot) = slot {
            store(slot, file.key, ahead);
        }
        read
    }

    /// Notes that the daemon looks up an inode; returns how many pages of its table the disk reads
    /// for it.
    pub fn looked_at(&self, device: u64, inode: u64, table: InodeTable) -> u64 {
        let pages = table.read_for(inode);
        if pages.count() == 0 {
            0
        } else {
            self.cached.register(FileKey::new(device, 0), pages, ALWAYS)
        }
    }

    //= discnice/6.3-directories
    /// Notes that the daemon lists a directory of `size` bytes; returns how many pages the disk
    /// reads for it. A directory smaller than a page lies in its inode.
    pub fn listed(&self, directory: FileKey, size: u64) -> u64 {
        self.cached.register(directory, Pages { first: 0, end: size / PAGE }, ALWAYS)
    }

    /// Notes that the daemon has these pages because they were written, or read in another way.
    pub fn brought_in(&self, key: FileKey, pages: Pages) {
        let _ = self.cached.register(key, pages, ALWAYS);
    }

    /// Notes that these pages were written, in a file that was `size` bytes long before. A gap
    /// between its old end and the pages is a hole, which occupies no disk: assemblers write the
    /// end of an object file first.
    pub fn written(&self, key: FileKey, pages: Pages, size: u64) {
        let end = size.div_ceil(PAGE);
        let hole = Pages { first: end, end: pages.first };
        let first = if hole.count() < HOLE { pages.first.min(end) } else { pages.first };
        self.brought_in(key, Pages { first, ..pages });
    }

    /// Returns how many of these pages the daemon does not have, as far as is known.
    #[must_use]
    pub fn missing(&self, key: FileKey, pages: Pages) -> u64 {
        self.cached.clean(key, pages, ALWAYS)
    }

    /// Notes that the file was truncated to `size` bytes, or deleted.
    pub fn cut(&self, key: FileKey, size: u64, before: u64) {
        if !self.cached.is_unused() {
            let _ = self.cached.truncated(key, size, before, ALWAYS);
        }
    }

    fn slot(&self, key: FileKey) -> Option<&Slot> {
        self.slots.get(key.get() as usize & (FILES - 1))
    }
}

fn load(slot: &Slot, key: FileKey) -> Option<ReadAhead> {
    let mut words = [0; WORDS];
    for (word, stored) in words.iter_mut().zip(&slot.state) {
        *word = stored.load(R);
    }
    (slot.key.load(R) == key.get()).then(|| ReadAhead::from_words(words))
}

fn store(slot: &Slot, key: FileKey, ahead: ReadAhead) {
    for (word, stored) in ahead.to_words().iter().zip(&slot.state) {
        stored.store(*word, R);
    }
    slot.key.store(key.get(), R);
}

/// Cached pages of one file.
struct Own<'a> {
    behind: &'a Behind,
    key: FileKey,
}

impl Own<'_> {
    /// Returns the slot for a mark and the value that identifies it there. Marks that share a slot
    /// overwrite each other.
    fn mark_of(&self, first: u64, order: u32) -> Option<(&AtomicU64, u64)> {
        let word = FileKey::new(self.key.get(), first << 4 | u64::from(order)).get();
        Some((self.behind.marks.get(word as usize & (MARKS - 1))?, word))
    }
}

impl Cache for Own<'_> {
    fn bring_in(&self, pages: Pages) -> u64 {
        self.behind.cached.register(self.key, pages, ALWAYS)
    }

    fn absent(&self, pages: Pages) -> u64 {
        self.behind.cached.clean(self.key, pages, ALWAYS)
    }

    fn mark(&self, first: u64, order: u32) {
        if let Some((place, word)) = self.mark_of(first, order) {
            place.store(word, R);
        }
    }

    fn take_mark(&self, first: u64, order: u32) -> bool {
        self.mark_of(first, order).is_some_and(|(place, word)| {
            place.load(R) == word && place.compare_exchange(word, 0, R, R).is_ok()
        })
    }
}

#[cfg(test)]
mod tests;
