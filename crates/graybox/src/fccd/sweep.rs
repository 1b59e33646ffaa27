//! Regions by touching pages (sections 4.1.1 and 4.1.2), with what Linux shows beside the page
//! touched: a fault maps the cached pages of the window around it.
//!
//! A hit costs no disk, and neither does following it to both ends of its *run*, the cached
//! pages without a hole: each window overlaps the last by a page that is known to be there. What
//! costs are the jumps through *gaps*, one page read for each that ends in a gap. They are so long
//! that those that are left to the file's end are likely to be paid by what is left of the budget.

use std::io;

use crate::pagecache::{FAULT_AROUND, Seen, page_size};

use super::regions::{Region, push_merged};

/// Pages of a window.
const WINDOW: u64 = FAULT_AROUND / 4096;
/// Looks at a run that covers the whole file.
const MOST_LOOKS: u64 = 16384;
/// Looks at the window that starts at the first page and touches the second.
pub type Look<'a> = dyn FnMut(u64, u64) -> io::Result<Seen> + 'a;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Covering the pages looked for, in order.
    pub regions: Vec<Region>,
    /// Looks taken.
    pub looks: u64,
    /// Pages that had to be read.
    pub misses: u64,
}

//= gray-box/4.1.1-sparing
/// The regions of a file of so many pages, of which about `budget` may be read.
///
/// # Errors
/// Of the first look; if a later one fails, the file has shrunk and the rest is not cached.
pub fn sweep(pages: u64, budget: u64, look: &mut Look<'_>) -> io::Result<Found> {
    let mut sweep = Sweep {
        look,
        pages,
        budget: budget.max(1),
        step: (pages / MOST_LOOKS).max(WINDOW),
        at: 0,
        in_run: false,
        run_start: 0,
        runs: 0,
        shortest: u64::MAX,
        absent: 0,
        found: Found::default(),
    };
    while sweep.at < pages {
        let went = if sweep.in_run { sweep.follow() } else { sweep.cross() };
        match went {
            Err(error) if sweep.found.looks == 1 => return Err(error),
            Err(_) => sweep.decide(pages, false),
            Ok(()) => {}
        }
    }
    Ok(sweep.found)
}

/// All that is before `at` is decided.
struct Sweep<'a, 'b> {
    look: &'a mut Look<'b>,
    pages: u64,
    budget: u64,
    step: u64,
    at: u64,
    /// Set if the page before `at` is cached.
    in_run: bool,
    run_start: u64,
    /// Runs that have ended, the shortest of them, and the pages of the gaps.
    runs: u64,
    shortest: u64,
    absent: u64,
    found: Found,
}

impl Sweep<'_, '_> {
    fn look(&mut self, start: u64, page: u64) -> io::Result<Seen> {
        self.found.looks += 1;
        let seen = (self.look)(start, page)?;
        self.found.misses += u64::from(seen.read);
        Ok(seen)
    }

    /// Decides that the pages up to `end` are as the one said.
    fn decide(&mut self, end: u64, cached: bool) {
        let end = end.min(self.pages);
        if end <= self.at {
            return;
        }
        match (self.in_run, cached) {
            (false, true) => self.run_start = self.at,
            (true, false) => {
                self.runs += 1;
                self.shortest = self.shortest.min(self.at - self.run_start);
            }
            _ => {}
        }
        self.in_run = cached;
        self.absent += if cached { 0 } else { end - self.at };
        let (offset, length) = (self.at * page_size(), (end - self.at) * page_size());
        let cached_bytes = if cached { length } else { 0 };
        push_merged(&mut self.found.regions, Region { offset, length, cached_bytes });
        self.at = end;
    }

    /// Decides as a window shows.
    fn decide_window(&mut self, start: u64, seen: Seen) {
        for page in 0..WINDOW {
            self.decide(start + page + 1, seen.cached >> page & 1 == 1);
        }
    }

    /// Goes on in a run.
    fn follow(&mut self) -> io::Result<()> {
        let start = self.at - 1 + (self.step - WINDOW);
        let start = start.min(self.pages - 1);
        let seen = self.look(start, start)?;
        // Between two looks at a file too large to see all of: as the nearer.
        let middle = if seen.read { u64::midpoint(self.at, start) } else { start };
        self.decide(middle, true);
        self.decide(start, false);
        self.decide_window(start, seen);
        Ok(())
    }

    /// Jumps through a gap, and back to where the run begins in which the jump ended.
    fn cross(&mut self) -> io::Result<()> {
        let left = self.budget.saturating_sub(self.found.misses);
        if left == 0 {
            self.decide(self.pages, false);
            return Ok(());
        }
        let from = self.at;
        let page = (from + self.jump(left)).min(self.pages - 1);
        let mut start = page.saturating_sub(WINDOW - 1).max(from);
        let mut seen = self.look(start, page)?;
        if !seen.read && seen.cached.count_ones() == 1 {
            seen = self.look_beside(start, page, seen)?;
        }
        let mut windows = vec![(start, seen)];
        while start > from && seen.cached & 1 == 1 {
            let known = start;
            start = start.saturating_sub(self.step - 1).max(from);
            seen = self.look(start, known.min(start + WINDOW - 1))?;
            windows.push((start, seen));
        }
        self.decide(start, false);
        for (start, seen) in windows.into_iter().rev() {
            // Between two looks back, as the later, which was a hit.
            self.decide(start, true);
            self.decide_window(start, seen);
        }
        Ok(())
    }

    /// A single page in a window: left by an earlier probe, or of a block of pages that carries the
    /// kernel's read-ahead mark, which is never shown.
    fn look_beside(&mut self, start: u64, page: u64, seen: Seen) -> io::Result<Seen> {
        let other = if page > start { start } else { (start + WINDOW - 1).min(self.pages - 1) };
        let again = self.look(start, other)?;
        let cached = if again.read { seen.cached } else { u16::MAX };
        Ok(Seen { cached, ..seen })
    }

    //= gray-box/4.1.1-correlation
    /// How many pages to jump, with `left` to read.
    ///
    /// If gaps end anywhere with the same probability, the mean gap being `g`, a jump of `j` ends in
    /// the gap with `q = exp(-j / g)`, and a gap costs `q / (1 - q)` misses. For all the
    /// gaps to come to cost what is left: `j = g * ln((left + gaps) / left)`.
    fn jump(&self, left: u64) -> u64 {
        /// Before any is known: runs and gaps of 2 MiB.
        const USUAL: f64 = 512.0;
        let (left, rest) = (left as f64, (self.pages - self.at) as f64);
        let seen = (self.runs + 1) as f64;
        let gap = (self.absent as f64 + USUAL) / seen;
        let gaps = rest * seen / (self.at as f64 + 2.0 * USUAL);
        // Evenly over the rest, as if nothing more came.
        let even = rest / left;
        let mut jump = (gap * ((left + gaps) / left).ln()).max(even / 4.0);
        if self.runs >= 2 {
            // A shorter one would find nothing more.
            jump = jump.max((self.shortest as f64).min(even));
        }
        // At random, so that a second look does not see the pages that the first brought in.
        let jump = if self.at == 0 { jump * (0.5 + fastrand::f64() / 2.0) } else { jump };
        jump as u64 + fastrand::u64(0..WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of which these pages are cached.
    fn swept(cached: &[bool], budget: u64) -> Found {
        let is_cached = |page: u64| cached.get(page as usize).copied().unwrap_or(false);
        let mut look = |start: u64, page: u64| {
            assert!(start <= page && page < start + WINDOW && page < cached.len() as u64);
            let bits =
                (0..WINDOW).fold(0, |bits, bit| bits | u16::from(is_cached(start + bit)) << bit);
            Ok(Seen { start: start * page_size(), read: !is_cached(page), cached: bits })
        };
        sweep(cached.len() as u64, budget, &mut look).unwrap()
    }

    fn right_pages(found: &Found, cached: &[bool]) -> usize {
        let pages = found
            .regions
            .iter()
            .flat_map(|region| (0..region.length / page_size()).map(|_| region.cached_bytes > 0));
        pages.zip(cached).filter(|(seen, is)| seen == *is).count()
    }

    //= gray-box/4.1.1-sparing
    #[test]
    fn runs_of_1_mib_are_found_within_a_thousandth() {
        let pages = 512 << 8;
        let (mut right, mut misses) = (0, 0);
        for _ in 0..5 {
            let mut cached = vec![false; pages];
            while cached.iter().filter(|page| **page).count() * 2 < pages {
                let start = fastrand::usize(..pages - 256);
                cached[start..start + 256].fill(true);
            }
            let found = swept(&cached, pages as u64 / 1000);
            right += right_pages(&found, &cached);
            misses += found.misses;
        }
        assert!(right * 100 > 5 * pages * 85, "{right} of {}", 5 * pages);
        assert!(misses <= 5 * (pages as u64 / 1000 + 1), "{misses}");
    }

    //= gray-box/4.1.1-correlation
    #[test]
    fn all_and_nothing() {
        let pages = 64 << 8;
        let found = swept(&vec![true; pages], 16);
        assert_eq!((found.misses, found.regions.len()), (0, 1));
        let found = swept(&vec![false; pages], 16);
        assert!((10..=17).contains(&found.misses), "{}", found.misses);
        assert_eq!(found.regions.len(), 1);
    }

    #[test]
    fn a_file_too_large_to_see_all_of() {
        let pages = 4 << 20;
        let mut cached = vec![false; pages];
        cached[1 << 20..3 << 20].fill(true);
        let found = swept(&cached, pages as u64 / 1000);
        assert!(right_pages(&found, &cached) * 1000 > pages * 999);
        assert!(found.looks < 2 * MOST_LOOKS, "{}", found.looks);
    }

    proptest! {
        #[test]
        fn every_page_once(
            runs in proptest::collection::vec((0usize..3000, 1usize..400), 0..20),
            pages in 1usize..3000,
            budget in 0u64..50,
        ) {
            let mut cached = vec![false; pages];
            for (start, length) in runs {
                let start = start.min(pages);
                cached[start..(start + length).min(pages)].fill(true);
            }
            let found = swept(&cached, budget);
            let mut next = 0;
            for region in found.regions {
                prop_assert_eq!(region.offset, next);
                prop_assert!(region.length > 0);
                next += region.length;
            }
            prop_assert_eq!(next, pages as u64 * page_size());
        }
    }
}
