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

mod entry;
mod key;
mod place;
mod places;
#[cfg(test)]
mod tests;

use core::sync::atomic::AtomicU32;

use discnice_units::Moment;

use crate::blocks::Pages;
pub use entry::EXPIRE;
use entry::{DIRTY_MASK, File, Kept, Leaf, R, Stamp};
pub use key::FileKey;
use place::{CHUNK_MASK, Place};

/// Leaves: 4 GiB of dirty pages in order, a quarter of that at random.
const LEAVES: usize = 1 << 15;
/// Files with dirty pages.
const FILES: usize = 1 << 13;
/// Pages of a leaf.
const WIDTH: u64 = 64;

//= discnice/4.4-table
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

    /// Returns true if nothing was ever registered.
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

    //= discnice/4.4-registered
    /// Registers written pages; returns how many of them were not dirty.
    pub fn register(&self, file: FileKey, pages: Pages, now: Moment) -> u64 {
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
    pub fn clean(&self, file: FileKey, pages: Pages, now: Moment) -> u64 {
        let Some(place) = self.find_place(file) else { return pages.count() };
        let dirty = |share: Share| {
            let leaf = self.find_leaf(place, share.chunk)?;
            let dirty = leaf.bits().load(R) & share.bits;
            (!leaf.is_expired(now)).then(|| u64::from(dirty.count_ones()))
        };
        pages.count().saturating_sub(shares(pages).filter_map(dirty).sum())
    }

    /// Notes that these pages are on their way to the disk; returns how many were dirty.
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

    //= discnice/4.4-unlink
    /// The file was deleted, or cut to nothing: returns how many pages need not be written.
    /// `size` is what it had, in bytes.
    pub fn dropped(&self, file: FileKey, size: u64, now: Moment) -> u64 {
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
    pub fn truncated(&self, file: FileKey, size: u64, before: u64, now: Moment) -> u64 {
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
    fn cut(&self, place: Place, pages: Pages, now: Moment) -> u64 {
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
            let chunk = Stamp(file.own.load(R)).chunk();
            if chunk == Stamp::NOWHERE { 0 } else { of_chunk(Kept::WithFile(file), chunk) }
        });
        let ours = |leaf: &&Leaf| leaf.key.load(R) & !CHUNK_MASK == place.leaf_key(0);
        let apart = |leaf: &Leaf| of_chunk(Kept::Apart(leaf), leaf.key.load(R) & CHUNK_MASK);
        own.saturating_add(self.leaves.iter().filter(ours).map(apart).sum())
    }
}
