//! Estimates what page faults on a mapping of another user's file have read (DiscNice, 5.5).
//!
//! The kernel does not tell what is cached of such a file, and examining all of it would read it.
//! So a few pages are sampled when the file is mapped ([`Sample`]). When the mapping ends, we see
//! which of its pages are mapped: those that the program touched, and those around them that were
//! cached. A fault that missed the cache has read a window around itself ([`Faulted`]); the sample
//! says how much of it was cached before.

use crate::blocks::Pages;

/// Looks that decide if they all agree: most files are cached as a whole or not at all.
const AGREEING: u64 = 8;
/// Looks at most: in between the share is known within 6 %.
const LOOKS: u64 = 64;
/// Pages of which one look tells: those that the kernel maps around a fault.
pub const LOOK: u64 = 16;
/// Misses, not made good by hits, after which a fault reads its own page alone (mm/filemap.c,
/// `MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u64 = 100;

/// How much of a file was cached, judged by looking at a few of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Looks so far.
    looks: u64,
    /// Pages that were looked at.
    seen: u64,
    /// Sampled pages that were cached.
    cached: u64,
    /// Pages that looking has read.
    read: u64,
}

impl Sample {
    /// The page to look at next, of `pages`; `None` when enough is known. The places divide the file evenly,
    /// each look's as far from the earlier ones as may be, so that any number of them covers it.
    #[must_use]
    pub fn next(&self, pages: u64) -> Option<u64> {
        let agree = self.cached == 0 || self.cached == self.seen;
        let enough = self.looks >= if agree { AGREEING } else { LOOKS };
        if enough || self.looks.saturating_mul(LOOK) >= pages {
            return None;
        }
        // The bits of the number in reverse order: halves, quarters, eighths.
        let spread = u128::from(self.looks.reverse_bits()) * u128::from(pages);
        u64::try_from(spread >> u64::BITS).ok()
    }

    /// Notes what a look found, in pages.
    pub fn note(&mut self, seen: u64, cached: u64, read: bool) {
        self.looks = self.looks.saturating_add(1);
        self.seen = self.seen.saturating_add(seen);
        self.cached = self.cached.saturating_add(cached.min(seen));
        self.read = self.read.saturating_add(read.into());
    }

    /// Pages that looking has read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read
    }

    /// How many of `pages` of a file of `of` pages had to be read, beside those that looking has read.
    #[must_use]
    pub fn missing(&self, pages: u64, of: u64) -> u64 {
        let share = |part: u64, whole: u64| {
            let product = u128::from(pages.min(of)) * u128::from(part);
            let rounded = product.saturating_add(u128::from(whole) / 2);
            rounded.checked_div(whole.into()).and_then(|share| u64::try_from(share).ok())
        };
        // Where nothing was seen nothing is known to be cached.
        let missing = share(self.seen.saturating_sub(self.cached), self.seen).unwrap_or(pages);
        missing.saturating_sub(share(self.read, of).unwrap_or(0))
    }

    /// Packs the sample into one number, for a table of atomic ones.
    #[must_use]
    pub fn to_word(self) -> u64 {
        let field = |number: u64, shift: u32| (number & 0xffff) << shift;
        field(self.looks, 48) | field(self.seen, 32) | field(self.cached, 16) | field(self.read, 0)
    }

    /// Unpacks a sample from that number.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            looks: word >> 48,
            seen: word >> 32 & 0xffff,
            cached: word >> 16 & 0xffff,
            read: word & 0xffff,
        }
    }
}

//= discnice/5.5-mmap
/// What faults have brought in of a file, by which of its pages are mapped.
#[derive(Debug, Clone, Copy)]
pub struct Faulted {
    /// Pages that a miss reads around itself; less than two are itself alone.
    window: u64,
    /// Pages of the file.
    size: u64,
    mapped: u64,
    brought_in: u64,
    /// Up to here everything is counted.
    counted: u64,
}

impl Faulted {
    /// Nothing yet, of a file of `size` pages of which each miss reads `window`.
    #[must_use]
    pub const fn new(window: u64, size: u64) -> Self {
        Self { window, size, mapped: 0, brought_in: 0, counted: 0 }
    }

    /// Notes mapped pages, all of them behind those noted before.
    pub fn mapped(&mut self, run: Pages) {
        let half = self.window / 2;
        // Faults that run past a whole window trigger read-ahead of another one.
        let ahead = if run.count() > self.window { self.window } else { half };
        let from = run.first.saturating_sub(half).max(self.counted);
        let end = run.end.saturating_add(ahead).min(self.size);
        self.mapped = self.mapped.saturating_add(run.count());
        self.brought_in = self.brought_in.saturating_add(end.saturating_sub(from));
        self.counted = self.counted.max(end);
    }

    /// Pages that these faults had in the cache, read by them or not.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        let most = self.mapped.saturating_add(LOTS_OF_MISSES.saturating_mul(self.window));
        if self.brought_in < most { self.brought_in } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Looks at a file of which `is_cached` tells.
    fn sample(pages: u64, is_cached: impl Fn(u64) -> bool) -> Sample {
        let mut sample = Sample::default();
        while let Some(place) = sample.next(pages) {
            let window = place..(place + LOOK).min(pages);
            let seen = window.end - window.start;
            let cached = window.filter(|page| is_cached(*page)).count() as u64;
            sample.note(seen, cached, !is_cached(place));
        }
        sample
    }

    fn faulted(window: u64, size: u64, runs: &[Pages]) -> u64 {
        let mut faulted = Faulted::new(window, size);
        runs.iter().for_each(|run| faulted.mapped(*run));
        faulted.pages()
    }

    #[test]
    fn a_cold_scan_reads_the_file() {
        let sample = sample(100_000, |_| false);
        assert_eq!(sample.read(), AGREEING);
        let pages = faulted(2048, 100_000, &[Pages { first: 0, end: 100_000 }]);
        assert_eq!(sample.missing(pages, 100_000) + sample.read(), 100_000);
    }

    #[test]
    fn a_cached_file_is_read_for_nothing() {
        let sample = sample(100_000, |_| true);
        assert_eq!((sample.missing(100_000, 100_000), sample.read()), (0, 0));
    }

    #[test]
    fn the_share_of_a_half_cached_file_is_known() {
        let sample = sample(100_000, |page| page < 37_000);
        let missing = sample.missing(100_000, 100_000);
        assert!((60_000..66_000).contains(&missing), "{missing}");
    }

    #[test]
    fn a_touch_reads_its_window() {
        let touch = |first| Pages { first, end: first + 1 };
        assert_eq!(faulted(32, 10_000, &[touch(0)]), 17, "none lies before");
        assert_eq!(faulted(32, 10_000, &[touch(100), touch(5000)]), 66);
        assert_eq!(faulted(32, 10_000, &[touch(100), touch(120)]), 53, "windows overlap");
        assert_eq!(faulted(0, 10_000, &[touch(100), touch(5000)]), 2, "no read-ahead");
        let touches: Vec<Pages> = (0..1000).map(|at| touch(at * 1000)).collect();
        assert_eq!(faulted(32, 1 << 20, &touches), 1000 + 100 * 32, "the kernel gives up");
    }

    proptest! {
        #[test]
        fn no_more_is_read_than_there_is(window in 0u64..5000, size in 1u64..1 << 40, runs in prop::collection::vec((0u64..1000, 1u64..1000), 0..50), word: u64) {
            let mut at = 0u64;
            let mut faulted = Faulted::new(window, size);
            for (gap, length) in runs {
                let run = Pages { first: at + gap, end: at + gap + length };
                if run.end > size {
                    break;
                }
                faulted.mapped(run);
                at = run.end;
            }
            prop_assert!(faulted.pages() <= size);
            prop_assert!(Sample::from_word(word).missing(faulted.pages(), size) <= size);
            prop_assert_eq!(Sample::from_word(word).to_word(), word);
        }

        #[test]
        fn what_is_all_there_or_not_at_all_is_known_exactly(pages in 1u64..1 << 30, cached: bool) {
            let sample = sample(pages, |_| cached);
            prop_assert_eq!(sample.missing(pages, pages) + sample.read(), if cached { 0 } else { pages });
        }
    }
}
