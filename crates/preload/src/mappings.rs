//! Files that the program has mapped, where page faults must be predicted (DiscNice, 5.5).
//!
//! A fault passes no hook, and where the kernel keeps no account it shows in no counter. What it
//! leaves is the page: how many more of a mapping's pages are cached when it is given up, than when it
//! was made, is what the faults have read. The program's other reads of the same file meanwhile
//! count as well; that error is the price.
//!
//! The table is small: a mapping that finds no place is not watched.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use discnice_sys::residency;

use crate::engine;
use crate::thread::local;

const PLACES: usize = 64;
const R: Ordering = Ordering::Relaxed;

/// One mapping. `start` is what makes it valid; zero is a free place.
struct Mapping {
    start: AtomicUsize,
    length: AtomicUsize,
    /// The file system's slot in the class.
    slot: AtomicUsize,
    /// Pages that were cached at the last look.
    cached: AtomicU64,
}

static MAPPINGS: [Mapping; PLACES] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        slot: AtomicUsize::new(0),
        cached: AtomicU64::new(0),
    }
}; PLACES];

/// A place that is being filled or emptied.
const BUSY: usize = 1;

/// The program has mapped `length` bytes of a file at `start`.
pub fn made(fd: i32, start: usize, length: usize) {
    let Some(slot) = engine::regulator().and_then(|regulator| regulator.watches_mapping(fd)) else {
        return;
    };
    let Ok(cached) = residency::mapped(start, length) else { return };
    let free = |place: &&Mapping| place.start.compare_exchange(0, BUSY, R, R).is_ok();
    if let Some(place) = MAPPINGS.iter().find(free) {
        place.length.store(length, R);
        place.slot.store(slot, R);
        place.cached.store(cached, R);
        place.start.store(start, Ordering::Release);
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
    let (Ok(cached), Some(regulator)) =
        (residency::mapped(start, place.length.load(R)), engine::regulator())
    else {
        return;
    };
    let before = place.cached.swap(cached, R);
    regulator.mapping_read(&local().thread, place.slot.load(R), cached.saturating_sub(before));
}
