//! The write-size predictor's update region table (DiscNice, 4.4 and 5.2).
//!
//! What has been written and not yet reached the disk, by file and page, for all processes of a
//! class. Writing a page that is in the table costs nothing; deleting a file takes its pages out
//! again, uncounted.
//!
//! The paper keeps an array for each file and wishes for a tree. This is a tree of two levels laid
//! into hash tables: files, and leaves of 64 pages that hold a bit for each. A file of ten
//! terabytes takes as many leaves as it has places where it is dirty; where it was first written, its leaf is
//! a part of its own entry, so that a small file takes no other. A leaf's bits change by one
//! atomic operation that returns what they were, so that of two processes that dirty a page at
//! once just one is charged; nothing is ever locked, and a process that is killed leaves at worst
//! a page too many. A file that is deleted is not searched for in the table: its generation changes,
//! and leaves of an older one mean nothing.
//!
//! The table is bounded. When a place in it is needed, what has been there longest is taken to
//! have been written; so is everything after [`EXPIRE`], by when the kernel has written it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use discnice_units::Nanos;

use crate::blocks::Pages;

/// Relaxed everywhere: each step stands alone.
const R: Ordering = Ordering::Relaxed;

/// Leaves: 4 GiB of dirty pages in order, a quarter of that at random.
const LEAVES: usize = 1 << 15;
/// Files with dirty pages.
const FILES: usize = 1 << 13;
/// Places that a key may take.
const PROBES: usize = 16;
/// So often somebody tries to take a place that others take meanwhile.
const CLAIMS: usize = 8;
/// Pages of a leaf.
const WIDTH: u64 = 64;

/// Linux writes dirty pages back after 30 s (`dirty_expire_centisecs`), looking every 5 s
/// (`dirty_writeback_centisecs`).
pub const EXPIRE: Nanos = Nanos(33 * Nanos::SECOND.0);

/// Of a leaf's key: valid, file (13 bits), generation (14 bits), position (36 bits).
const VALID: u64 = 1 << 63;
const FILE_SHIFT: u32 = 50;
const GENERATION_SHIFT: u32 = 36;
const GENERATION_MASK: u64 = (1 << 14) - 1;
const CHUNK_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

/// The lower half of a file's state.
const DIRTY_MASK: u64 = u32::MAX as u64;

/// Names a file: device and inode number, mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKey(u64);

impl FileKey {
    /// The key of the file with this `st_dev` and `st_ino`.
    #[must_use]
    pub const fn new(device: u64, inode: u64) -> Self {
        let mixed = mix(inode ^ mix(device ^ 0x5bd1_e995));
        Self(if mixed == 0 { 1 } else { mixed })
    }

    /// As a number, never zero.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The key that [`FileKey::get`] gave; `None` for zero.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }
}

/// The finaliser of MurmurHash3: every bit of the result depends on every bit given.
const fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[derive(Debug)]
#[repr(C)]
struct Leaf {
    key: AtomicU64,
    /// A bit for each page that is dirty.
    bits: AtomicU64,
    /// When the first of them became so.
    since: AtomicU64,
}

#[derive(Debug)]
#[repr(C)]
struct File {
    key: AtomicU64,
    /// Generation (upper half) and dirty pages (lower half).
    state: AtomicU64,
    /// The leaf of where it was first written: a bit for each page that is dirty.
    bits: AtomicU64,
    /// Which leaf that is, and when the first of them became so: [`Moment`].
    own: AtomicU64,
}

/// What a dirty range costs: an entry for a file with its first leaf, and a leaf for each other one.
const _: () = assert!(size_of::<File>() <= 32 && size_of::<Leaf>() <= 32);

/// A leaf's position (24 bits) and a time in units of 1024 ns (40 bits, 13 days), packed.
#[derive(Debug, Clone, Copy)]
struct Moment(u64);

impl Moment {
    const TIME_BITS: u32 = 40;
    const UNIT_SHIFT: u32 = 10;
    /// The position of no leaf: those from there on, at 4 TiB, are never a file's own.
    const NOWHERE: u64 = (1 << (64 - Self::TIME_BITS)) - 1;

    fn new(chunk: u64, now: Nanos) -> Self {
        let time = now.0 >> Self::UNIT_SHIFT & ((1 << Self::TIME_BITS) - 1);
        Self(chunk.min(Self::NOWHERE) << Self::TIME_BITS | time)
    }

    const fn chunk(self) -> u64 {
        self.0 >> Self::TIME_BITS
    }

    /// How far this time and now are apart, whichever is first.
    fn apart(self, now: Nanos) -> Nanos {
        let unused = 64 - Self::TIME_BITS;
        let apart = ((now.0 >> Self::UNIT_SHIFT).wrapping_sub(self.0) << unused).cast_signed();
        Nanos((apart >> unused).unsigned_abs() << Self::UNIT_SHIFT)
    }
}

/// A leaf, wherever it is kept.
#[derive(Debug, Clone, Copy)]
enum Kept<'a> {
    WithFile(&'a File),
    Apart(&'a Leaf),
}

impl<'a> Kept<'a> {
    const fn bits(self) -> &'a AtomicU64 {
        match self {
            Self::WithFile(file) => &file.bits,
            Self::Apart(leaf) => &leaf.bits,
        }
    }

    fn is_expired(self, now: Nanos) -> bool {
        match self {
            Self::WithFile(file) => Moment(file.own.load(R)).apart(now) > EXPIRE,
            // Also what will be dirtied in the future: a clock that was set back tells nothing of the past.
            Self::Apart(leaf) => now.0.abs_diff(leaf.since.load(R)) > EXPIRE.0,
        }
    }

    /// Its first page becomes dirty.
    fn begin(self, now: Nanos) {
        match self {
            Self::WithFile(file) => {
                file.own.store(Moment::new(Moment(file.own.load(R)).chunk(), now).0, R);
            }
            Self::Apart(leaf) => leaf.since.store(now.0, R),
        }
    }

    /// Takes bits out; returns how many there were and had not expired.
    fn cut(self, bits: u64, now: Nanos) -> u64 {
        let expired = self.is_expired(now);
        let before = self.bits().fetch_and(!bits, R) & bits;
        if expired { 0 } else { before.count_ones().into() }
    }
}

/// A file's place in the table, in one of its generations.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: u64,
    generation: u64,
}

impl Place {
    const fn leaf_key(self, chunk: u64) -> u64 {
        let generation = (self.generation & GENERATION_MASK) << GENERATION_SHIFT;
        VALID | self.index << FILE_SHIFT | generation | chunk
    }
}

/// The table; all zeroes is an empty one.
#[derive(Debug)]
#[repr(C)]
pub struct UpdateRegions {
    /// Not zero once anything has been registered.
    used: AtomicU32,
    _reserved: AtomicU32,
    files: [File; FILES],
    leaves: [Leaf; LEAVES],
}

/// A leaf's share of a range.
#[derive(Debug, Clone, Copy)]
struct Share {
    chunk: u64,
    bits: u64,
}

/// Cuts a range into leaves. What lies beyond the largest position is left out.
fn shares(pages: Pages) -> impl Iterator<Item = Share> {
    let end = pages.end.min((CHUNK_MASK + 1) * WIDTH);
    let chunks = pages.first / WIDTH..end.div_ceil(WIDTH);
    chunks.map(move |chunk| {
        let from = pages.first.saturating_sub(chunk * WIDTH).min(WIDTH);
        let to = end.saturating_sub(chunk * WIDTH).min(WIDTH);
        let below = |bit: u64| if bit >= WIDTH { u64::MAX } else { (1 << bit) - 1 };
        Share { chunk, bits: below(to) & !below(from) }
    })
}

impl Leaf {
    const fn new() -> Self {
        Self { key: AtomicU64::new(0), bits: AtomicU64::new(0), since: AtomicU64::new(0) }
    }
}

impl File {
    const fn new() -> Self {
        let [key, state, bits, own] = [const { AtomicU64::new(0) }; 4];
        Self { key, state, bits, own }
    }

    fn has(&self, file: FileKey) -> bool {
        self.key.load(Ordering::Acquire) == file.0
    }

    /// What would be lost with it: nothing if nothing of it is dirty, and the less the older it is.
    fn loss(&self, now: Nanos) -> u64 {
        let age = Moment(self.own.load(R)).apart(now);
        let dirty = self.key.load(R) != 0 && self.state.load(R) & DIRTY_MASK > 0;
        if dirty { u64::MAX - age.0 } else { 0 }
    }
}

impl Default for UpdateRegions {
    fn default() -> Self {
        Self::new()
    }
}

impl UpdateRegions {
    /// An empty table: 1 MiB of zeroes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            used: AtomicU32::new(0),
            _reserved: AtomicU32::new(0),
            files: [const { File::new() }; FILES],
            leaves: [const { Leaf::new() }; LEAVES],
        }
    }

    /// Whether nothing was ever registered.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.used.load(R) == 0
    }

    /// Memory that holds something, in bytes.
    #[cfg(test)]
    pub(crate) fn bytes_in_use(&self) -> u64 {
        let files = self.files.iter().filter(|file| file.state.load(R) & DIRTY_MASK > 0);
        let leaves = self.leaves.iter().filter(|leaf| leaf.bits.load(R) != 0);
        (files.count() * size_of::<File>() + leaves.count() * size_of::<Leaf>()) as u64
    }

    /// Registers written pages; returns how many of them were not dirty.
    pub fn register(&self, file: FileKey, pages: Pages, now: Nanos) -> u64 {
        if pages.count() == 0 {
            return 0;
        }
        self.used.store(1, R);
        let place = self.take_place(file, pages.first / WIDTH, now);
        let (mut new, mut inside) = (0, 0);
        for share in shares(pages) {
            let before = self.take_leaf(place, share.chunk, now).map_or(0, |leaf| {
                let before = leaf.bits().fetch_or(share.bits, R);
                if before == 0 {
                    leaf.begin(now);
                }
                before
            });
            inside += u64::from(share.bits.count_ones());
            new += u64::from((share.bits & !before).count_ones());
        }
        self.add(place, new);
        // Beyond the table's last position everything is new.
        new + (pages.count() - inside)
    }

    /// How many of these pages are not dirty.
    #[must_use]
    pub fn clean(&self, file: FileKey, pages: Pages, now: Nanos) -> u64 {
        let Some(place) = self.find_place(file) else { return pages.count() };
        let dirty = |share: Share| {
            let leaf = self.find_leaf(place, share.chunk)?;
            let dirty = leaf.bits().load(R) & share.bits;
            (!leaf.is_expired(now)).then(|| u64::from(dirty.count_ones()))
        };
        pages.count().saturating_sub(shares(pages).filter_map(dirty).sum())
    }

    /// These pages are on their way to the disk; returns how many were dirty.
    pub fn written_back(&self, file: FileKey, pages: Pages) -> u64 {
        let Some(place) = self.find_place(file) else { return 0 };
        let gone = self.sum(place, pages, |leaf, bits| {
            let before = leaf.bits().fetch_and(!bits, R);
            u64::from((before & bits).count_ones())
        });
        self.subtract(place, gone);
        gone
    }

    /// All of the file is on its way to the disk (fsync): nothing of it can be taken back.
    pub fn flushed(&self, file: FileKey) {
        if let Some(place) = self.find_place(file) {
            self.next_generation(place);
        }
    }

    /// The file was deleted, or cut to nothing: returns how many pages need not be written.
    /// `size` is what it had, in bytes.
    pub fn dropped(&self, file: FileKey, size: u64, now: Nanos) -> u64 {
        let Some(place) = self.find_place(file) else { return 0 };
        let Some(slot) = self.files.get(place.index as usize) else { return 0 };
        // A part may have been written meanwhile: count what has not. Most files that are deleted soon have no
        // leaf but their own.
        let all = slot.state.load(R) & DIRTY_MASK;
        let pages = if all == u64::from(slot.bits.load(R).count_ones()) {
            Kept::WithFile(slot).cut(u64::MAX, now)
        } else {
            self.cut(place, Pages::touched(0, size), now)
        };
        self.next_generation(place);
        pages
    }

    /// The file was cut to `size` bytes from `before`: returns how many pages need not be written.
    pub fn truncated(&self, file: FileKey, size: u64, before: u64, now: Nanos) -> u64 {
        if size == 0 {
            return self.dropped(file, before, now);
        }
        let Some(place) = self.find_place(file) else { return 0 };
        let kept = Pages::touched(0, size).end;
        let pages = Pages { first: kept, end: Pages::touched(0, before).end.max(kept) };
        let gone = self.cut(place, pages, now);
        self.subtract(place, gone);
        gone
    }

    /// Clears pages; returns how many of them were dirty and not expired.
    fn cut(&self, place: Place, pages: Pages, now: Nanos) -> u64 {
        self.sum(place, pages, |leaf, bits| leaf.cut(bits, now))
    }

    /// What `each` says of the leaves that these pages have, with the bits that are theirs. Looks at as many
    /// leaves as the range has or the table, whichever is fewer: what a program wrote at both ends of a file of
    /// terabytes is one range.
    fn sum(&self, place: Place, pages: Pages, each: impl Fn(Kept<'_>, u64) -> u64) -> u64 {
        if pages.count() / WIDTH < LEAVES as u64 {
            let leaf = |share: Share| Some(each(self.find_leaf(place, share.chunk)?, share.bits));
            return shares(pages).filter_map(leaf).sum();
        }
        let of_chunk = |leaf: Kept<'_>, chunk: u64| {
            let whole = Pages { first: chunk * WIDTH, end: (chunk + 1) * WIDTH };
            let both = Pages { first: whole.first.max(pages.first), end: whole.end.min(pages.end) };
            shares(both).next().map_or(0, |share| each(leaf, share.bits))
        };
        let own = self.files.get(place.index as usize).map_or(0, |file| {
            let chunk = Moment(file.own.load(R)).chunk();
            if chunk == Moment::NOWHERE { 0 } else { of_chunk(Kept::WithFile(file), chunk) }
        });
        let ours = |leaf: &&Leaf| leaf.key.load(R) & !CHUNK_MASK == place.leaf_key(0);
        let apart = |leaf: &Leaf| of_chunk(Kept::Apart(leaf), leaf.key.load(R) & CHUNK_MASK);
        own.saturating_add(self.leaves.iter().filter(ours).map(apart).sum())
    }

    fn find_place(&self, file: FileKey) -> Option<Place> {
        let index = slots(file.0, FILES)
            .find(|index| self.files.get(*index).is_some_and(|slot| slot.has(file)))?;
        self.place_at(index)
    }

    fn place_at(&self, index: usize) -> Option<Place> {
        let state = self.files.get(index)?.state.load(R);
        Some(Place { index: index as u64, generation: state >> 32 })
    }

    /// The file's place, made if need be; then the leaf at `chunk` is its own.
    fn take_place(&self, file: FileKey, chunk: u64, now: Nanos) -> Place {
        for _ in 0..CLAIMS {
            if let Some(place) =
                self.find_place(file).or_else(|| self.claim_place(file, chunk, now))
            {
                return place;
            }
        }
        Place { index: 0, generation: 0 }
    }

    /// Takes a place for a file that has none; `None` if somebody else takes it as well. Of several who do so
    /// for the same file one wins: who chose the same place finds its state changed, and who chose another did
    /// so as the first was taken, and finds that behind his own.
    fn claim_place(&self, file: FileKey, chunk: u64, now: Nanos) -> Option<Place> {
        let loss = |index: &usize| self.files.get(*index).map_or(u64::MAX, |slot| slot.loss(now));
        let index = slots(file.0, FILES).min_by_key(loss)?;
        let slot = self.files.get(index)?;
        let (old, state) = (slot.key.load(Ordering::Acquire), slot.state.load(Ordering::Acquire));
        let (bits, own) = (slot.bits.load(R), slot.own.load(R));
        let advance = |from, to| slot.state.compare_exchange(from, to, Ordering::AcqRel, R);
        // First all else, so that nothing of the file before is the new one's; but only what was seen of it, as
        // somebody may have gone further meanwhile.
        let next = next_state(state);
        advance(state, next).ok()?;
        slot.bits.fetch_and(!bits, R);
        let _ = slot.own.compare_exchange(own, Moment::new(chunk, now).0, R, R);
        slot.key.compare_exchange(old, file.0, Ordering::AcqRel, R).ok()?;
        // Who saw the state above and not the key comes too late now.
        let _ = advance(next, next_state(next));
        let found = self.find_place(file)?;
        if found.index != index as u64 {
            let _ = slot.key.compare_exchange(file.0, 0, R, R);
        }
        Some(found)
    }

    /// Adds dirty pages, unless the file was deleted meanwhile.
    fn add(&self, place: Place, pages: u64) {
        let Some(slot) = self.files.get(place.index as usize) else { return };
        let _ = slot.state.fetch_update(R, R, |state| {
            let same = state >> 32 == place.generation;
            let sum = (state & DIRTY_MASK).saturating_add(pages).min(DIRTY_MASK);
            same.then_some(place.generation << 32 | sum)
        });
    }

    fn subtract(&self, place: Place, pages: u64) {
        let Some(slot) = self.files.get(place.index as usize) else { return };
        // Deleted meanwhile: then its pages are gone already.
        let _ = slot.state.fetch_update(R, R, |state| {
            let same = state >> 32 == place.generation;
            let rest = (state & DIRTY_MASK).saturating_sub(pages);
            same.then_some(place.generation << 32 | rest)
        });
    }

    /// Begins a new generation without dirty pages; returns how many the last one had.
    fn next_generation(&self, place: Place) -> u64 {
        let Some(slot) = self.files.get(place.index as usize) else { return 0 };
        let next = next_state(place.generation << 32);
        let changed = slot
            .state
            .fetch_update(R, R, |state| (state >> 32 == place.generation).then_some(next));
        changed.map_or(0, |before| {
            slot.bits.store(0, R);
            before & DIRTY_MASK
        })
    }

    fn find_leaf(&self, place: Place, chunk: u64) -> Option<Kept<'_>> {
        let file = self.files.get(place.index as usize)?;
        if chunk < Moment::NOWHERE && Moment(file.own.load(R)).chunk() == chunk {
            return Some(Kept::WithFile(file));
        }
        self.find_apart(place.leaf_key(chunk)).map(Kept::Apart)
    }

    fn find_apart(&self, key: u64) -> Option<&Leaf> {
        slots(mix(key), LEAVES)
            .filter_map(|index| self.leaves.get(index))
            .find(|leaf| leaf.key.load(Ordering::Acquire) == key)
    }

    /// The leaf at this position, made if need be; its bits are cleared if they have expired.
    fn take_leaf(&self, place: Place, chunk: u64, now: Nanos) -> Option<Kept<'_>> {
        if let Some(leaf) = self.find_leaf(place, chunk) {
            if leaf.is_expired(now) {
                let before = leaf.bits().swap(0, R);
                self.subtract(place, u64::from(before.count_ones()));
            }
            return Some(leaf);
        }
        let key = place.leaf_key(chunk);
        let candidates = slots(mix(key), LEAVES).filter_map(|index| self.leaves.get(index));
        let leaf = candidates.min_by_key(|leaf| self.value(leaf))?;
        let old = leaf.key.load(Ordering::Acquire);
        if old != key && self.evict(leaf, old) {
            // Before anybody finds it, who would take it for expired.
            leaf.since.store(now.0, R);
            let _ = leaf.key.compare_exchange(old, key, Ordering::AcqRel, R);
        }
        // Another thread may just have taken this one, or one that comes before it, for the same pages.
        self.find_apart(key).map(Kept::Apart)
    }

    /// What would be lost with a leaf: nothing if it is empty, and the less the older it is.
    fn value(&self, leaf: &Leaf) -> u64 {
        if leaf.bits.load(R) == 0 || self.owner(leaf).is_none() { 0 } else { leaf.since.load(R) }
    }

    /// The file that a leaf belongs to, if it still does.
    fn owner(&self, leaf: &Leaf) -> Option<Place> {
        let key = leaf.key.load(R);
        let place = self.place_at((key >> FILE_SHIFT) as usize & (FILES - 1))?;
        (place.leaf_key(key & CHUNK_MASK) == key).then_some(place)
    }

    /// Empties the leaf of this key; false if it has been taken by somebody else, whose pages it has now.
    fn evict(&self, leaf: &Leaf, key: u64) -> bool {
        let (owner, before) = (self.owner(leaf), leaf.bits.load(Ordering::Acquire));
        let same = leaf.key.load(Ordering::Acquire) == key;
        if !same || leaf.bits.compare_exchange(before, 0, Ordering::AcqRel, R).is_err() {
            return false;
        }
        if let Some(place) = owner {
            self.subtract(place, u64::from(before.count_ones()));
        }
        true
    }
}

/// The state of the next generation, without dirty pages.
const fn next_state(state: u64) -> u64 {
    (state >> 32).wrapping_add(1) << 32
}

fn slots(hash: u64, length: usize) -> impl Iterator<Item = usize> {
    let first = hash as usize;
    (0..PROBES).map(move |step| first.wrapping_add(step) & (length - 1))
}
