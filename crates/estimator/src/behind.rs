//! What lies behind a file system whose files somebody else reads for us (FUSE).
//!
//! There are two caches: that of the mounted file system, which can be asked, and below it that of the
//! file system that the daemon reads from, which cannot. A page that is missing in the first one costs
//! the disk nothing if the daemon has read or written it before, and more than itself if the kernel
//! reads ahead for the daemon. Nothing that we advise reaches the daemon's descriptor, so here the
//! read-ahead is emulated, as in the paper (4.3 and 5.4): for the daemon's requests, which are short and, where
//! they are not in order, exactly what the program asked for.
//!
//! What is remembered of a file is which pages must be in the daemon's cache, and the state of the
//! read-ahead of whoever opened it last. All of it is what this class has caused: what was cached
//! before is not known, nor what has been dropped since.

use core::sync::atomic::{AtomicU64, Ordering};

use discnice_units::Nanos;

use crate::blocks::{PAGE, Pages};
use crate::readahead::{Cache, ReadAhead, WORDS};
use crate::regions::{FileKey, UpdateRegions};

/// Relaxed everywhere: hints.
const R: Ordering = Ordering::Relaxed;

/// Files whose read-ahead is followed at once.
const FILES: usize = 1 << 10;
/// Marks in the daemon's cache that are remembered, of all files.
const MARKS: usize = 1 << 12;
/// The longest request that a daemon gets, in pages: FUSE's own read-ahead, 128 KiB.
const REQUEST: u64 = 32;
/// Holes from so many pages on are left out, which are in no program's object files: 64 MiB.
const HOLE: u64 = 1 << 14;
/// Pages in a cache do not expire as dirty ones do: all were brought in at one moment.
const ALWAYS: Nanos = Nanos(1);
/// A longer read is not followed page by page, in pages: 1 GiB.
const FOLLOWED: u64 = 1 << 18;

/// One file's read-ahead.
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

/// All files that the class reads so; all zeroes is a fresh one.
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
    /// Which one.
    pub key: FileKey,
    /// Its size in bytes.
    pub size: u64,
    /// The read-ahead window of the disk below, in pages.
    pub window: u64,
}

/// How the file system that a daemon reads from keeps its inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InodeTable {
    /// How many lie in a page.
    pub inodes_per_page: u16,
    /// Pages that are read together; zero where that is not known.
    pub stretch: u16,
}

impl InodeTable {
    /// Of the file systems that have one: inodes of the size that mkfs gives them, and what is read for one
    /// of them. ext4: fs/ext4/inode.c, `inode_readahead_blks`, 32 and the one behind them; xfs: `inode_cluster_size`, 16 KiB.
    #[must_use]
    pub fn of(file_system: &str) -> Self {
        match file_system {
            "ext4" => Self { inodes_per_page: 16, stretch: 32 },
            "xfs" => Self { inodes_per_page: 8, stretch: 4 },
            _ => Self::default(),
        }
    }

    /// The pages of the table that are read for an inode.
    fn read_for(self, inode: u64) -> Pages {
        let page = inode.checked_div(self.inodes_per_page.into()).unwrap_or(0);
        let stretch = u64::from(self.stretch);
        let first = page.checked_div(stretch).unwrap_or(0).saturating_mul(stretch);
        Pages { first, end: first.saturating_add(stretch) }
    }
}

impl Behind {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; FILES],
            marks: [const { AtomicU64::new(0) }; MARKS],
            cached: UpdateRegions::new(),
        }
    }

    /// Somebody opened the file, so that the daemon did: with a read-ahead of its own, but the marks in
    /// the cache are the file's.
    pub fn opened(&self, key: FileKey) {
        if let Some(slot) = self.slot(key)
            && let Some(ahead) = load(slot, key)
        {
            store(slot, key, ahead.of_another_descriptor());
        }
    }

    /// These pages are asked of the daemon; returns how many the disk reads for it.
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

    /// The daemon looks at an inode; returns how many pages of its table the disk reads for that.
    pub fn looked_at(&self, device: u64, inode: u64, table: InodeTable) -> u64 {
        let pages = table.read_for(inode);
        if pages.count() == 0 {
            0
        } else {
            self.cached.register(FileKey::new(device, 0), pages, ALWAYS)
        }
    }

    /// The daemon lists a directory of so many bytes; returns how many pages the disk reads for that. One below a page
    /// lies in its inode.
    pub fn listed(&self, directory: FileKey, size: u64) -> u64 {
        self.cached.register(directory, Pages { first: 0, end: size / PAGE }, ALWAYS)
    }

    /// The daemon has these pages: they were written, or read in another way.
    pub fn brought_in(&self, key: FileKey, pages: Pages) {
        let _ = self.cached.register(key, pages, ALWAYS);
    }

    /// These pages were written of a file that had so many bytes before. What lies between is a hole, of which no disk
    /// has anything: assemblers write the end of an object file first.
    pub fn written(&self, key: FileKey, pages: Pages, size: u64) {
        let end = size.div_ceil(PAGE);
        let hole = Pages { first: end, end: pages.first };
        let first = if hole.count() < HOLE { pages.first.min(end) } else { pages.first };
        self.brought_in(key, Pages { first, ..pages });
    }

    /// How many of these the daemon does not have, as far as is known.
    #[must_use]
    pub fn missing(&self, key: FileKey, pages: Pages) -> u64 {
        self.cached.clean(key, pages, ALWAYS)
    }

    /// The file was cut to `size` bytes, or deleted.
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

/// One file's pages.
struct Own<'a> {
    behind: &'a Behind,
    key: FileKey,
}

impl Own<'_> {
    /// The place of a mark, and what stands there for it. Two that share a place forget each other.
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

    /// It is larger than a test's stack.
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
