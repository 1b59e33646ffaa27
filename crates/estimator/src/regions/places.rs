//! Finds files and their leaves in the table, and evicts others when there is no room.

use core::sync::atomic::Ordering;

use discnice_units::Moment;

use super::entry::{DIRTY_MASK, Kept, Leaf, R, Stamp};
use super::key::{FileKey, mix};
use super::place::{CHUNK_MASK, FILE_SHIFT, Place};
use super::{FILES, LEAVES, UpdateRegions};

/// Places that a key may take.
const PROBES: usize = 16;
/// Attempts to take a slot that other threads take at the same time.
const CLAIMS: usize = 8;

impl UpdateRegions {
    pub(super) fn find_place(&self, file: FileKey) -> Option<Place> {
        let index = slots(file.0, FILES)
            .find(|index| self.files.get(*index).is_some_and(|slot| slot.has(file)))?;
        self.place_at(index)
    }

    fn place_at(&self, index: usize) -> Option<Place> {
        let state = self.files.get(index)?.state.load(R);
        Some(Place { index: index as u64, generation: state >> 32 })
    }

    /// The file's place, made if need be; then the leaf at `chunk` is its own.
    pub(super) fn take_place(&self, file: FileKey, chunk: u64, now: Moment) -> Place {
        for _ in 0..CLAIMS {
            if let Some(place) =
                self.find_place(file).or_else(|| self.claim_place(file, chunk, now))
            {
                return place;
            }
        }
        Place { index: 0, generation: 0 }
    }

    /// Takes a slot for a file that has none; `None` if another thread takes it as well. Of several
    /// threads that do so for the same file one wins: a thread that chose the same slot finds its
    /// state changed, and one that chose another slot later finds the winner's before its own.
    fn claim_place(&self, file: FileKey, chunk: u64, now: Moment) -> Option<Place> {
        let loss = |index: &usize| {
            self.files.get(*index).map_or((u64::MAX, u64::MAX), |slot| slot.loss(now))
        };
        let index = slots(file.0, FILES).min_by_key(loss)?;
        let slot = self.files.get(index)?;
        let (old, state) = (slot.key.load(Ordering::Acquire), slot.state.load(Ordering::Acquire));
        let (bits, own) = (slot.bits.load(R), slot.own.load(R));
        let advance = |from, to| slot.state.compare_exchange(from, to, Ordering::AcqRel, R);
        // Clear the old file's data first so that the new file inherits none of it; but only the
        // data seen here, as another thread may have got further meanwhile.
        let next = next_state(state);
        advance(state, next).ok()?;
        slot.bits.fetch_and(!bits, R);
        let _ = slot.own.compare_exchange(own, Stamp::new(chunk, now).0, R, R);
        slot.key.compare_exchange(old, file.0, Ordering::AcqRel, R).ok()?;
        // Makes threads fail that saw the state above but not the new key.
        let _ = advance(next, next_state(next));
        let found = self.find_place(file)?;
        if found.index != index as u64 {
            let _ = slot.key.compare_exchange(file.0, 0, R, R);
        }
        Some(found)
    }

    /// Adds dirty pages, unless the file was deleted meanwhile.
    pub(super) fn add(&self, place: Place, pages: u64) {
        let Some(slot) = self.files.get(place.index as usize) else { return };
        let _ = slot.state.fetch_update(R, R, |state| {
            let same = state >> 32 == place.generation;
            let sum = (state & DIRTY_MASK).saturating_add(pages).min(DIRTY_MASK);
            same.then_some(place.generation << 32 | sum)
        });
    }

    pub(super) fn subtract(&self, place: Place, pages: u64) {
        let Some(slot) = self.files.get(place.index as usize) else { return };
        // Deleted meanwhile: then its pages are gone already.
        let _ = slot.state.fetch_update(R, R, |state| {
            let same = state >> 32 == place.generation;
            let rest = (state & DIRTY_MASK).saturating_sub(pages);
            same.then_some(place.generation << 32 | rest)
        });
    }

    /// Begins a new generation without dirty pages; returns how many the last one had.
    pub(super) fn next_generation(&self, place: Place) -> u64 {
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

    //= discnice/5.2-huge-files
    pub(super) fn find_leaf(&self, place: Place, chunk: u64) -> Option<Kept<'_>> {
        let file = self.files.get(place.index as usize)?;
        if chunk < Stamp::NOWHERE && Stamp(file.own.load(R)).chunk() == chunk {
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
    pub(super) fn take_leaf(&self, place: Place, chunk: u64, now: Moment) -> Option<Kept<'_>> {
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
            // Before another thread can find the leaf, which would seem expired to it.
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

    /// Empties the leaf with this key; returns false if another file has taken it and it now holds
    /// pages of that file.
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
