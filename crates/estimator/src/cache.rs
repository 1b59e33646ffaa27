//! The cache detector (DiscNice, 4.2; its means are those of Gray-Box Systems, 4.1).
//!
//! The paper examines a region of M bytes from the current read position and reuses the answer
//! while the program stays inside it. We do the same, with the most reliable means available for
//! the file:
//!
//! 1. cachestat(2): exact, for our own and for writable files, if it has ever counted a page of
//!    this file. A stacked file system queries the wrong inode and reports no pages;
//! 2. mincore(2): exact, for our own and for writable files;
//! 3. probes, for other users' files: exact for the pages around the probed one, which is read if
//!    it was not cached. The probed page is one that the program is about to read.
//!
//! M is not fixed: it doubles while whole regions turn out to be cached, and falls back to the
//! requested range at the first page that is not. A program that reads uncached data thus never has
//! more examined than it reads, and one that reads cached data pays next to nothing.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::blocks::{PAGE, Pages};
use crate::system::{Probed, Refusal, System};

/// Relaxed everywhere: what is known about a file is a hint and publishes nothing.
const R: Ordering = Ordering::Relaxed;

/// First region, in pages: the kernel's smallest window.
const REACH_FIRST: u64 = 32;
//= discnice/4.2-region
/// Longest region for the means that count only, in pages: 64 MiB, less than a tenth of a
/// millisecond.
const REACH_COUNTED: u64 = 16_384;
/// Longest region for probes, in pages. Each 64 KiB costs a page fault, but once probes keep
/// finding everything cached, the program soon makes none.
const REACH_PROBED: u64 = 16;

/// How the cache is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Means {
    /// Not yet decided.
    Undecided = 0,
    /// cachestat has counted a page of this file.
    Count = 1,
    /// cachestat answers, but has never counted one.
    CountUnproven = 2,
    /// mincore.
    Resident = 3,
    /// Probes.
    Probe = 4,
    /// None: every page is taken to be missing.
    None = 5,
}

impl Means {
    const fn from_claim(claim: u32) -> Self {
        match claim {
            1 => Self::Count,
            2 => Self::CountUnproven,
            3 => Self::Resident,
            4 => Self::Probe,
            5 => Self::None,
            _ => Self::Undecided,
        }
    }
}

//= discnice/3-no-kernel-change
/// What is known of one open file's part in the page cache. All zeroes: nothing.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Detector {
    means: AtomicU32,
    /// Pages that are examined at once.
    reach: AtomicU32,
    /// Bytes known to be cached: from, to (`u64::MAX` if that is the file's end).
    low: AtomicU64,
    high: AtomicU64,
}

/// A file to be examined.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its descriptor.
    pub fd: i32,
    /// Its size in bytes.
    pub size: u64,
}

impl Detector {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            means: AtomicU32::new(0),
            reach: AtomicU32::new(0),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
        }
    }

    /// Forgets everything: the descriptor means another file.
    #[inline]
    pub fn forget(&self) {
        self.means.store(0, R);
        self.reach.store(0, R);
        self.forget_region();
    }

    /// Forgets what is cached: it turned out to be wrong, or may have become so.
    #[inline]
    pub fn forget_region(&self) {
        self.low.store(0, R);
        self.high.store(0, R);
    }

    /// A call took longer than one that finds everything cached: perhaps the region is not what it
    /// was, perhaps the machine is busy. The next question is a smaller one.
    pub fn doubt(&self) {
        self.forget_region();
        self.reach.store(self.reach.load(R) / 16, R);
    }

    //= discnice/4.2-reuse
    /// Returns true if the range lies in the region that is known to be cached.
    #[inline(always)]
    #[must_use]
    pub fn knows(&self, offset: u64, length: u64) -> bool {
        offset >= self.low.load(R) && offset.saturating_add(length) <= self.high.load(R)
    }

    /// The means that serves this file.
    #[must_use]
    pub fn means(&self) -> Means {
        Means::from_claim(self.means.load(R))
    }

    //= rate-windows/4-conservative
    /// Returns true if the means used for this file counts cached pages instead of sampling them.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.means(), Means::Count | Means::CountUnproven | Means::Resident)
    }

    /// Returns true if this file is already known to need probes.
    #[inline(always)]
    #[must_use]
    pub fn is_probed(&self) -> bool {
        self.means.load(R) == Means::Probe as u32
    }

    /// Returns true if this file needs probes; queries the system about `pages` if that is not
    /// known yet.
    pub fn must_probe(&self, system: &impl System, fd: i32, pages: Pages) -> bool {
        if self.means() == Means::Undecided
            && system.count(fd, pages.offset(), pages.bytes()) == Err(Refusal::Foreign)
        {
            self.means.store(Means::Probe as u32, R);
        }
        self.is_probed()
    }

    /// The bytes from `low` to `high` have just been read.
    pub fn assume(&self, low: u64, high: u64) {
        self.low.store(low, R);
        self.high.store(high, R);
    }

    //= discnice/4-cache
    /// How many of `asked` are not cached, and how many more the question itself has read. A
    /// region around them may be examined with them, and then is known to be cached.
    pub fn missing(&self, system: &impl System, file: Subject, asked: Pages) -> u64 {
        if asked.count() == 0 || self.knows(asked.offset(), asked.bytes()) {
            return 0;
        }
        let region = self.region(file.size, asked);
        let seen = self.look(system, file.fd, region);
        if seen.cached >= region.count() {
            self.remember(file.size, region);
            return 0;
        }
        self.reach.store(0, R);
        if region == asked {
            return asked.count().saturating_sub(seen.cached);
        }
        let missing = self.count_missing(system, file.fd, asked);
        if missing == 0 {
            self.remember(file.size, asked);
        }
        missing + seen.read
    }

    /// How many of exactly these pages are not cached; nothing is remembered.
    pub fn count_missing(&self, system: &impl System, fd: i32, pages: Pages) -> u64 {
        pages.count().saturating_sub(self.look(system, fd, pages).cached)
    }

    fn region(&self, size: u64, asked: Pages) -> Pages {
        let limit = if self.means() == Means::Probe { REACH_PROBED } else { REACH_COUNTED };
        let reach = u64::from(self.reach.load(R)).clamp(0, limit);
        let last = size.div_ceil(PAGE).max(asked.end);
        // A reader that went back once will do so again: as much before as after.
        let first = if asked.offset() < self.low.load(R) {
            asked.first.saturating_sub(reach)
        } else {
            asked.first
        };
        Pages { first, end: asked.first.saturating_add(reach).clamp(asked.end, last) }
    }

    fn remember(&self, size: u64, region: Pages) {
        let end = region.end.saturating_mul(PAGE);
        let (mut low, mut high) = (region.offset(), if end >= size { u64::MAX } else { end });
        let (known_low, known_high) = (self.low.load(R), self.high.load(R));
        if low <= known_high && known_low <= high && known_high > 0 {
            (low, high) = (low.min(known_low), high.max(known_high));
        }
        // A region that is neither the old nor the new one may be seen for a moment: a hint.
        self.low.store(low, R);
        self.high.store(high, R);
        let reach = (region.count().saturating_mul(2)).clamp(REACH_FIRST, REACH_COUNTED);
        self.reach.store(reach as u32, R);
    }

    fn look(&self, system: &impl System, fd: i32, pages: Pages) -> Probed {
        let (offset, length) = (pages.offset(), pages.bytes());
        let exact = |cached| Probed { cached, read: 0 };
        let seen = match self.means() {
            Means::Undecided | Means::CountUnproven => return self.decide(system, fd, pages),
            Means::Count => match system.count(fd, offset, length) {
                Ok(counts) => Some(exact(counts.cached)),
                // Another file behind the same number.
                Err(_) => return self.decide(system, fd, pages),
            },
            Means::Resident => system.resident(fd, offset, length).map(exact),
            Means::Probe => system.probe(fd, offset, length),
            Means::None => None,
        };
        seen.unwrap_or_default()
    }

    fn decide(&self, system: &impl System, fd: i32, pages: Pages) -> Probed {
        let (offset, length) = (pages.offset(), pages.bytes());
        let resident = || system.resident(fd, offset, length).filter(|cached| *cached > 0);
        let exact = |means, cached| (means, Probed { cached, read: 0 });
        let (means, seen) = match system.count(fd, offset, length) {
            Ok(counts) if counts.cached > 0 => exact(Means::Count, counts.cached),
            Ok(_) => match resident() {
                Some(cached) => exact(Means::Resident, cached),
                None => exact(Means::CountUnproven, 0),
            },
            Err(refusal) => {
                let foreign = refusal == Refusal::Foreign;
                let told = if foreign { None } else { system.resident(fd, offset, length) };
                match (told, || system.probe(fd, offset, length)) {
                    (Some(cached), _) => exact(Means::Resident, cached),
                    (None, probe) => {
                        probe().map_or(exact(Means::None, 0), |seen| (Means::Probe, seen))
                    }
                }
            }
        };
        self.means.store(means as u32, R);
        seen
    }
}
