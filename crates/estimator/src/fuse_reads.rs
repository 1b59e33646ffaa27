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

use discnice_units::Nanos;

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
const ALWAYS: Nanos = Nanos(1);
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 60_000_000;

    fn file(size: u64, window: u64) -> Served {
        Served { key: FileKey::new(1, 2), size, window }
    }

    /// Builds a [`Behind`] on a larger stack, as it does not fit a test's.
    fn behind() -> Box<Behind> {
        let made = std::thread::Builder::new().stack_size(8 << 20);
        made.spawn(|| Box::new(Behind::new())).unwrap().join().unwrap()
    }

    fn touched(offset: u64, length: u64) -> Pages {
        Pages::read(offset, length, SIZE)
    }

    #[test]
    fn a_file_is_read_once_however_often_it_is_opened() {
        let (behind, file) = (behind(), file(SIZE, 2048));
        let all = touched(0, SIZE);
        assert_eq!(behind.read(file, all), all.count());
        behind.opened(file.key);
        assert_eq!(behind.read(file, all), 0);
        behind.cut(file.key, 0, SIZE);
        assert_eq!(behind.read(file, all), all.count(), "another file of the same number");
    }

    #[test]
    fn inodes_are_read_by_stretches() {
        let behind = behind();
        let look = |inode| behind.looked_at(7, inode, InodeTable::of("ext4"));
        assert_eq!((look(12), look(13), look(511), look(512)), (32, 0, 0, 32));
        assert_eq!(behind.looked_at(7, 5000, InodeTable::of("tmpfs")), 0, "not known");
        let _ = look(u64::MAX);
    }

    //= discnice/6.3-directories
    #[test]
    fn directories_are_read_once_by_blocks() {
        let (behind, key) = (behind(), FileKey::new(7, 2));
        let list = |size| behind.listed(key, size);
        assert_eq!((list(60), list(4096), list(8192), list(8192)), (0, 1, 1, 0));
    }

    #[test]
    fn what_was_written_is_there() {
        let (behind, file) = (behind(), file(SIZE, 2048));
        behind.brought_in(file.key, touched(0, SIZE));
        assert_eq!(behind.missing(file.key, touched(0, SIZE)), 0);
        assert_eq!(behind.read(file, touched(4096, 1 << 20)), 0);
    }

    #[test]
    fn a_hole_before_what_was_written_costs_nothing() {
        let (behind, file) = (behind(), file(80_188, 2048));
        behind.written(file.key, touched(80_176, 12), 0);
        assert_eq!(behind.read(file, touched(0, 1024)), 0);
        behind.written(file.key, Pages::touched(1 << 50, 1), 80_188);
        assert_eq!(behind.missing(file.key, touched(100_000, 4096)), 2, "too long to be entered");
    }

    //= discnice/4.3-size
    //= discnice/5.4-modes
    #[test]
    fn reads_in_order_bring_in_what_was_measured() {
        // As Linux 6.18 does on ext4 with a window of 8 MiB: the call, and KiB read.
        for (each, calls, wanted) in [
            (4096, 80, &[(0, 16), (1, 64), (4, 240), (20, 960)][..]),
            (65_536, 20, &[(0, 256), (1, 1024), (4, 2048)][..]),
        ] {
            let (behind, file) = (behind(), file(SIZE, 2048));
            let seen: Vec<(u64, u64)> = (0..calls)
                .map(|call| (call, behind.read(file, touched(call * each, each)) * 4))
                .filter(|(_, read)| *read > 0)
                .collect();
            assert_eq!(seen, wanted);
        }
    }

    #[test]
    fn a_read_out_of_order_brings_in_what_is_asked_for() {
        let (behind, file) = (behind(), file(SIZE, 2048));
        assert_eq!(behind.read(file, touched(30 << 20, 65_536)), 16);
        assert_eq!(behind.read(file, touched(20 << 20, 65_536)), 16);
    }

    #[test]
    fn a_stride_over_four_pages_reads_all() {
        // As sqlite3 reads a table of long rows: pages of large folios hold the marks.
        let (behind, file) = (behind(), file(10_756_096, 2048));
        let mut read = behind.read(file, touched(0, 4096));
        behind.opened(file.key);
        let beginning = [(0, 4096), (4096, 32_768), (36_864, 65_536), (10_563_584, 4096)];
        let rows = (114_688..10_752_000).step_by(20_480).map(|at| (at, 4096));
        for (at, length) in beginning.into_iter().chain(rows) {
            read += behind.read(file, touched(at, length));
        }
        assert_eq!(read, file.size.div_ceil(PAGE), "as bindfs did");
    }

    #[test]
    fn random_reads_meet_the_marks_of_others() {
        // 915 reads of 64 KiB at random: as many pages as bindfs read for a generator like this one, 1.3
        // to 1.4 times those that were asked for.
        let (behind, file) = (behind(), file(SIZE, 2048));
        let (mut state, mut read, mut asked) = (1u64, 0, 0);
        for _ in 0..915 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pages = touched((state >> 33) % 915 * 65_536, 65_536);
            asked += behind.missing(file.key, pages);
            read += behind.read(file, pages);
        }
        assert!(read > asked * 11 / 10, "{read} for {asked}");
    }

    proptest! {
        #[test]
        fn no_page_is_read_twice(reads in prop::collection::vec((0u64..5000, 1u64..70), 1..200), window in 1u64..4096, cut in 0u64..4096) {
            let size = 4000 * PAGE - cut;
            let (behind, file) = (behind(), file(size, window));
            let mut read = 0;
            for (first, count) in reads {
                let asked = Pages { first, end: first + count };
                let inside = Pages { first, end: asked.end.min(4000) };
                let missing = if inside.count() > 0 { behind.missing(file.key, inside) } else { 0 };
                let cost = behind.read(file, asked);
                prop_assert!(cost >= missing);
                if inside.count() > 0 {
                    prop_assert_eq!(behind.missing(file.key, inside), 0);
                }
                read += cost;
            }
            prop_assert!(read <= 4000);
        }

        #[test]
        fn any_state_and_any_range_are_survived(words: [u64; WORDS], first: u64, count in 0u64..5_000, size: u64, window: u64) {
            let behind = behind();
            let file = file(size, window);
            store(behind.slot(file.key).unwrap(), file.key, ReadAhead::from_words(words));
            let asked = Pages { first, end: first.saturating_add(count) };
            let _ = behind.read(file, asked);
        }
    }
}
