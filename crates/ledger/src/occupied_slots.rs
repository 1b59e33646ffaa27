//! Which member slots are worth a look.
//!
//! A class has room for thousands of processes and mostly holds a few. Looking at every slot
//! would bring a megabyte of memory into being for each class that is shown.

use crate::primitive::{AtomicU64, Ordering};

/// Slots of one word.
const BITS: usize = u64::BITS as usize;

/// One bit for each of `64 * WORDS` slots. A bit may be set although its slot is free; it is set
/// for every slot that is taken, a moment after it was taken.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Occupied<const WORDS: usize> {
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Occupied<WORDS> {
    /// The slot has been taken.
    pub fn mark(&self, slot: usize) {
        if let Some(word) = self.words.get(slot / BITS) {
            // Release: a thread that clears the bit sees the slot's owner.
            word.fetch_or(1 << (slot % BITS), Ordering::Release);
        }
    }

    /// Returns true if the slot is marked.
    pub fn is_marked(&self, slot: usize) -> bool {
        let word = self.words.get(slot / BITS).map_or(0, |word| word.load(Ordering::Acquire));
        word & 1 << (slot % BITS) != 0
    }

    /// Returns true if any of 64 slots from this one on is marked; after the last slot come the
    /// first.
    pub fn is_any_marked(&self, first: usize) -> bool {
        let (place, shift) = (first / BITS, first % BITS);
        let word = |place: usize| {
            let word = self.words.get(if place < WORDS { place } else { 0 });
            word.map_or(0, |word| word.load(Ordering::Acquire))
        };
        word(place) >> shift != 0 || word(place + 1) & ((1 << shift) - 1) != 0
    }

    /// The slot was found free, unless `taken` finds now that it is not.
    ///
    /// If it was taken and marked before the bit is cleared here, `taken` sees that, because
    /// clearing acquires what marking released; if it is marked later, the bit stays set.
    pub fn clear(&self, slot: usize, taken: impl FnOnce() -> bool) {
        let Some(word) = self.words.get(slot / BITS) else { return };
        word.fetch_and(!(1 << (slot % BITS)), Ordering::AcqRel);
        if taken() {
            self.mark(slot);
        }
    }

    /// The slots that are marked, from the first on.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = word.load(Ordering::Acquire);
            core::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.checked_sub(1)?;
                Some(index * BITS + bit)
            })
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_and_cleared() {
        let occupied = Occupied::<4> { words: [const { AtomicU64::new(0) }; 4] };
        for slot in [0, 63, 64, 255, 255, 256, usize::MAX] {
            occupied.mark(slot);
        }
        let slots: Vec<usize> = occupied.slots().collect();
        assert_eq!(slots, [0, 63, 64, 255], "what has no bit is not marked");
        assert!(occupied.is_marked(63) && !occupied.is_marked(62) && !occupied.is_marked(256));
        occupied.clear(63, || false);
        occupied.clear(64, || true);
        assert_eq!(occupied.slots().count(), 3, "one turned out to be taken");
    }

    #[test]
    fn a_window_of_slots_goes_on_from_the_first() {
        for marked in 0..256 {
            let occupied = Occupied::<4> { words: [const { AtomicU64::new(0) }; 4] };
            occupied.mark(marked);
            for first in 0..256 {
                let within = (0..64).any(|probe| (first + probe) % 256 == marked);
                assert_eq!(occupied.is_any_marked(first), within, "{first} {marked}");
            }
        }
    }
}
