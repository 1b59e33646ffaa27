//! What the table is made of: a file's entry, which holds its first leaf, and the leaves apart from it.

use core::sync::atomic::{AtomicU64, Ordering};

use discnice_units::{Moment, Nanos};

use super::key::FileKey;

/// Relaxed everywhere: each step stands alone.
pub(super) const R: Ordering = Ordering::Relaxed;

//= discnice/4.4-clear
/// Linux writes dirty pages back after 30 s (`dirty_expire_centisecs`), looking every 5 s
/// (`dirty_writeback_centisecs`).
pub const EXPIRE: Nanos = Nanos(33 * Nanos::SECOND.0);

/// The lower half of a file's state.
pub(super) const DIRTY_MASK: u64 = u32::MAX as u64;

#[derive(Debug)]
#[repr(C)]
pub(super) struct Leaf {
    pub(super) key: AtomicU64,
    /// A bit for each page that is dirty.
    pub(super) bits: AtomicU64,
    /// When the first of them became so.
    pub(super) since: AtomicU64,
}

impl Leaf {
    pub(super) const fn new() -> Self {
        Self { key: AtomicU64::new(0), bits: AtomicU64::new(0), since: AtomicU64::new(0) }
    }
}

#[derive(Debug)]
#[repr(C)]
pub(super) struct File {
    pub(super) key: AtomicU64,
    /// Generation (upper half) and dirty pages (lower half).
    pub(super) state: AtomicU64,
    /// The leaf of where it was first written: a bit for each page that is dirty.
    pub(super) bits: AtomicU64,
    /// Position of that leaf, and when its first page became dirty: [`Stamp`].
    pub(super) own: AtomicU64,
}

impl File {
    pub(super) const fn new() -> Self {
        let [key, state, bits, own] = [const { AtomicU64::new(0) }; 4];
        Self { key, state, bits, own }
    }

    pub(super) fn has(&self, file: FileKey) -> bool {
        self.key.load(Ordering::Acquire) == file.0
    }

    /// What would be lost with it, in the order of comparison: nothing if nothing of it is dirty, the less the
    /// older it is, and of those that are equally old the less the fewer pages it has.
    pub(super) fn loss(&self, now: Moment) -> (u64, u64) {
        let age = Stamp(self.own.load(R)).apart(now);
        let pages = self.state.load(R) & DIRTY_MASK;
        let dirty = self.key.load(R) != 0 && pages > 0;
        if dirty { (u64::MAX - age.0, pages) } else { (0, 0) }
    }
}

/// What a dirty range costs: an entry for a file with its first leaf, and a leaf for each other one.
const _: () = assert!(size_of::<File>() <= 32 && size_of::<Leaf>() <= 32);

/// A leaf's position (24 bits) and a moment in units of 1024 ns (40 bits, 13 days), packed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp(pub(super) u64);

impl Stamp {
    const TIME_BITS: u32 = 40;
    const UNIT_SHIFT: u32 = 10;
    /// The position of no leaf: those from there on, at 4 TiB, are never a file's own.
    pub(super) const NOWHERE: u64 = (1 << (64 - Self::TIME_BITS)) - 1;

    pub(super) fn new(chunk: u64, now: Moment) -> Self {
        let time = now.0 >> Self::UNIT_SHIFT & ((1 << Self::TIME_BITS) - 1);
        Self(chunk.min(Self::NOWHERE) << Self::TIME_BITS | time)
    }

    pub(super) const fn chunk(self) -> u64 {
        self.0 >> Self::TIME_BITS
    }

    /// How far this time and now are apart, whichever is first.
    pub(super) fn apart(self, now: Moment) -> Nanos {
        let unused = 64 - Self::TIME_BITS;
        let apart = ((now.0 >> Self::UNIT_SHIFT).wrapping_sub(self.0) << unused).cast_signed();
        Nanos((apart >> unused).unsigned_abs() << Self::UNIT_SHIFT)
    }
}

/// A leaf, wherever it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept<'a> {
    WithFile(&'a File),
    Apart(&'a Leaf),
}

impl<'a> Kept<'a> {
    pub(super) const fn bits(self) -> &'a AtomicU64 {
        match self {
            Self::WithFile(file) => &file.bits,
            Self::Apart(leaf) => &leaf.bits,
        }
    }

    pub(super) fn is_expired(self, now: Moment) -> bool {
        match self {
            Self::WithFile(file) => Stamp(file.own.load(R)).apart(now) > EXPIRE,
            // Also what will be dirtied in the future: a clock that was set back tells nothing of the past.
            Self::Apart(leaf) => now.0.abs_diff(leaf.since.load(R)) > EXPIRE.0,
        }
    }

    /// Its first page becomes dirty.
    pub(super) fn begin(self, now: Moment) {
        match self {
            Self::WithFile(file) => {
                file.own.store(Stamp::new(Stamp(file.own.load(R)).chunk(), now).0, R);
            }
            Self::Apart(leaf) => leaf.since.store(now.0, R),
        }
    }

    /// Takes bits out; returns how many there were and had not expired.
    pub(super) fn cut(self, bits: u64, now: Moment) -> u64 {
        let expired = self.is_expired(now);
        let before = self.bits().fetch_and(!bits, R) & bits;
        if expired { 0 } else { before.count_ones().into() }
    }
}
