//! Files that the program has mapped, where page faults must be predicted (DiscNice, 5.5).
//!
//! A fault passes no hook, and where the kernel keeps no account it shows in no counter. What it
//! leaves is the page: how many more of a mapping's pages are cached when it is given up, than when it
//! was made, is what the faults have read. The program's other reads of the same file meanwhile
//! count as well; that error is the price.
//!
//! Of another user's file the kernel does not tell what is cached: see
//! [`discnice_estimator::faults`].
//!
//! The table is small: a mapping that finds no place is not watched.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use discnice_estimator::blocks::{PAGE, Pages};
use discnice_estimator::faults::{Faulted, LOOK, Sample};
use discnice_interpose::table::CHUNK;
use discnice_regulator::{File, Mapped};
use discnice_sys::{mapped, residency};

use crate::thread::local;
use crate::{engine, faults};

const PLACES: usize = 64;
const R: Ordering = Ordering::Relaxed;

/// One mapping. `start` is what makes it valid; zero is a free place.
struct Mapping {
    start: AtomicUsize,
    length: AtomicUsize,
    /// The file system's slot in the class.
    slot: AtomicUsize,
    /// Pages that were cached at the last look; for another user's file, those that faults have
    /// read.
    cached: AtomicU64,
    /// For another user's file, what a few looks found ([`Sample::to_word`]); zero for others.
    sample: AtomicU64,
    /// Its pages from the mapping's start to its end.
    pages: AtomicU64,
    /// Pages that a fault reads around itself.
    window: AtomicU64,
    /// For a file that a daemon serves: its key, and the first page that is mapped.
    served: AtomicU64,
    first: AtomicU64,
}

static MAPPINGS: [Mapping; PLACES] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        slot: AtomicUsize::new(0),
        cached: AtomicU64::new(0),
        sample: AtomicU64::new(0),
        pages: AtomicU64::new(0),
        window: AtomicU64::new(0),
        served: AtomicU64::new(0),
        first: AtomicU64::new(0),
    }
}; PLACES];

/// What prediction takes in a process with up to 1,024 descriptors, in bytes. What the processes of a class must
/// know together (which pages are dirty) is in its shared memory, once.
const _: () = assert!(CHUNK * File::PREDICTION + size_of::<[Mapping; PLACES]>() <= 64 << 10);

/// A place that is being filled or emptied.
const BUSY: usize = 1;

/// What a fault reads around itself where that is not told, in pages: the kernel's default
/// (include/linux/pagemap.h, `VM_READAHEAD_PAGES`).
const WINDOW: u64 = 32;

/// The program has mapped `length` bytes of a file from `at` on at `start`.
pub fn made(fd: i32, start: usize, length: usize, at: u64) {
    let Some(regulator) = engine::regulator() else { return };
    let Some(file) = regulator.watches_mapping(fd) else { return };
    let pages = file.pages.saturating_sub(at / PAGE);
    let (cached, sample) = if file.told {
        let Ok(cached) = residency::mapped(start, length) else { return };
        (cached, Sample::default())
    } else {
        let sample = sample(fd, at, pages.min((length as u64).div_ceil(PAGE)));
        if sample == Sample::default() {
            return;
        }
        (0, sample)
    };
    let free = |place: &&Mapping| place.start.compare_exchange(0, BUSY, R, R).is_ok();
    if let Some(place) = MAPPINGS.iter().find(free) {
        place.length.store(length, R);
        place.slot.store(file.slot, R);
        place.cached.store(cached, R);
        place.sample.store(sample.to_word(), R);
        place.pages.store(pages, R);
        place.window.store(window(file, start), R);
        place.served.store(file.served, R);
        place.first.store(at / PAGE, R);
        place.start.store(start, Ordering::Release);
    }
    if sample.read() > 0 {
        regulator.mapping_read(&local().thread, file.slot, sample.read());
    }
}

/// Looks at a few of the `pages` of a file that are mapped.
fn sample(fd: i32, at: u64, pages: u64) -> Sample {
    let mut sample = Sample::default();
    while let Some(page) = sample.next(pages) {
        let place = at.saturating_add(page.saturating_mul(PAGE));
        let Ok(seen) = residency::look(fd, place, place) else { break };
        let cached = u64::from(seen.cached.count_ones());
        sample.note(LOOK.min(pages - page), cached, seen.read);
    }
    sample
}

fn window(file: Mapped, start: usize) -> u64 {
    if faults::is_ours(start) {
        return 0;
    }
    let of_device = || Some(mapped::read_around(file.device)? / PAGE);
    file.window.or_else(of_device).unwrap_or(WINDOW)
}

/// How a fault on the mapping at `start` reads has changed: alone, or with the pages around it.
pub fn advised(start: usize, alone: bool) {
    let ours = |place: &&Mapping| place.start.load(Ordering::Acquire) == start;
    if let Some(place) = MAPPINGS.iter().find(ours).filter(|_| start > BUSY) {
        let window = if alone { 0 } else { place.window.load(R).max(WINDOW) };
        place.window.store(window, R);
    }
}

/// The program is about to give up what is mapped at `start`.
pub fn about_to_end(start: usize) {
    let ours = |place: &&Mapping| {
        start > BUSY && place.start.compare_exchange(start, BUSY, Ordering::Acquire, R).is_ok()
    };
    if let Some(place) = MAPPINGS.iter().find(ours) {
        settle(place, start);
        place.start.store(0, Ordering::Release);
    }
}

/// Settles all mappings, which stay: the program ends, or becomes another one.
pub fn settle_all() {
    for place in &MAPPINGS {
        let start = place.start.load(Ordering::Acquire);
        if start > BUSY {
            settle(place, start);
        }
    }
}

fn settle(place: &Mapping, start: usize) {
    // The program may have unmapped a part of it unseen: then this fails, and nothing is charged.
    let (Some(cached), Some(regulator)) = (cached(place, start), engine::regulator()) else {
        return;
    };
    let before = place.cached.swap(cached, R);
    let new = cached.saturating_sub(before);
    let first = place.first.load(R);
    let mapped = (place.length.load(R) as u64).div_ceil(PAGE).min(place.pages.load(R));
    let pages = Pages { first, end: first.saturating_add(mapped) };
    let read = regulator.read_behind_mapping(place.served.load(R), pages, new);
    if read > 0 {
        regulator.mapping_read(&local().thread, place.slot.load(R), read);
    }
}

/// Returns the cached pages of a mapping; for another user's file, those that faults have read.
fn cached(place: &Mapping, start: usize) -> Option<u64> {
    let (length, word) = (place.length.load(R), place.sample.load(R));
    if word == 0 {
        return residency::mapped(start, length).ok();
    }
    let (sample, pages) = (Sample::from_word(word), place.pages.load(R));
    let mut faulted = Faulted::new(place.window.load(R), pages);
    let run = |first: u64, count: u64| {
        faulted.mapped(Pages { first, end: first.saturating_add(count).min(pages) });
    };
    mapped::runs(start, length, run).ok()?;
    Some(sample.missing(faulted.pages(), pages))
}
