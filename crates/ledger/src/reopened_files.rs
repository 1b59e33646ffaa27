//! Which files the members have opened lately: a file that is opened again is worth its place in the page cache.
//!
//! Two bitmaps of hashed keys take turns. Once the newer one holds [`FILES`] files the older one is emptied and filled, so that
//! between one and two times as many are remembered. A file is taken for one that was seen, wrongly, at most once in four times.

use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// Files after which the older bitmap is emptied.
const FILES: u32 = 8192;
const BITS: usize = 1 << 16;
const WORDS: usize = BITS / u64::BITS as usize;

/// Relaxed everywhere: a file more or less makes no difference.
const R: Ordering = Ordering::Relaxed;

/// The files. All zeroes is none.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Seen {
    /// Files that were noted in the newer bitmap.
    noted: AtomicU32,
    /// Which one that is, in its lowest bit.
    turn: AtomicU32,
    bitmaps: [[AtomicU64; WORDS]; 2],
}

impl Seen {
    /// Notes a file by its key; returns whether it was noted before.
    pub(crate) fn note(&self, key: u64) -> bool {
        let (place, bit) = (key as usize % BITS / 64, 1 << (key % 64));
        let newer = (self.turn.load(R) & 1) as usize;
        let [newer, older] = [&self.bitmaps[newer], &self.bitmaps[1 - newer]];
        if newer[place].fetch_or(bit, R) & bit != 0 {
            return true;
        }
        let known = older[place].load(R) & bit != 0;
        let noted = self.noted.fetch_add(1, R).wrapping_add(1);
        // The thread that sets the count back turns them; if it is killed before, another one does after as many files.
        if noted >= FILES && self.noted.compare_exchange(noted, 0, R, R).is_ok() {
            older.iter().for_each(|word| word.store(0, R));
            self.turn.fetch_add(1, R);
        }
        known
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fresh() -> Seen {
        let bitmap = || core::array::from_fn(|_| AtomicU64::new(0));
        Seen { noted: AtomicU32::new(0), turn: AtomicU32::new(0), bitmaps: [bitmap(), bitmap()] }
    }

    /// Keys as mixed as those of files.
    fn key(number: u64) -> u64 {
        discnice_estimator::regions::FileKey::new(1, number).get()
    }

    #[test]
    fn a_file_is_known_from_its_second_opening_on_until_many_others_were_opened() {
        let seen = fresh();
        assert!(!seen.note(key(0)) && seen.note(key(0)));
        (1..6_000).for_each(|number| _ = seen.note(key(number)));
        assert!(seen.note(key(0)), "it is worth its place");
        // As many as both bitmaps can hold at most; those that are taken for others count for none.
        (10_000..40_000).for_each(|number| _ = seen.note(key(number)));
        let known = (0..6_000).filter(|number| seen.note(key(*number))).count();
        assert!(known < 6_000 / 3, "{known} of 6000 are still known");
    }

    #[test]
    fn a_thread_that_was_killed_before_it_turned_them_leaves_it_to_the_next() {
        let seen = fresh();
        seen.noted.store(FILES, R);
        (0..100_000).for_each(|number| _ = seen.note(key(number)));
        let known = (0..100_000).filter(|number| seen.note(key(1_000_000 + number))).count();
        assert!(known < 100_000 / 4, "{known} files that were never opened are known");
    }

    #[test]
    fn few_new_files_are_taken_for_known_ones() {
        let seen = fresh();
        let wrong = (0..100_000).filter(|number| seen.note(key(*number))).count();
        assert!(wrong < 100_000 / 4, "{wrong}");
    }
}
