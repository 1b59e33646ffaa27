//! The update region table against a plain set of pages: whatever a class does to a file, the table knows
//! what of it is dirty. Sequences are kept below what the table holds; what it forgets is a test of the
//! crate. What faults have read is checked for its bounds alone.
#![no_main]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use discnice_estimator::blocks::{Pages, read_before_write};
use discnice_estimator::faults::{Faulted, Sample};
use discnice_estimator::regions::{FileKey, UpdateRegions};
use discnice_units::{Moment, Nanos};
use libfuzzer_sys::fuzz_target;

static TABLE: UpdateRegions = UpdateRegions::new();
const NOW: Moment = Moment(1000 * Nanos::SECOND.0);
/// Steps of one input: each dirties at most five of the table's 32,768 leaves.
const STEPS: usize = 64;

fuzz_target!(|data: &[u8]| {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let file = FileKey::new(1, NEXT.fetch_add(1, Ordering::Relaxed));
    let mut dirty: HashSet<u64> = HashSet::new();
    for step in data.chunks_exact(4).take(STEPS) {
        change(file, &mut dirty, step);
    }
    assert_eq!(TABLE.dropped(file, 1 << 50, NOW), dirty.len() as u64);
    bounds(data);
});

fn change(file: FileKey, dirty: &mut HashSet<u64>, step: &[u8]) {
    let &[kind, low, high, count] = step else { return };
    // Near the file's start, and at ten terabytes.
    let base = if high & 0x80 == 0 { 0 } else { 10 << 28 };
    let first = base + (u64::from(high & 0x7f) << 8 | u64::from(low)) % 600;
    let pages = Pages { first, end: first + u64::from(count) + 1 };
    let all = first..pages.end;
    match kind % 8 {
        0..=3 => {
            let new = all.clone().filter(|page| !dirty.contains(page)).count() as u64;
            assert_eq!(TABLE.clean(file, pages, NOW), new);
            assert_eq!(TABLE.register(file, pages, NOW), new);
            dirty.extend(all);
        }
        4 | 5 => {
            let gone = all.filter(|page| dirty.remove(page)).count() as u64;
            assert_eq!(TABLE.written_back(file, pages), gone);
        }
        6 => {
            TABLE.flushed(file);
            dirty.clear();
        }
        _ => {
            let before = dirty.len() as u64;
            dirty.retain(|page| *page < first);
            let gone = before - dirty.len() as u64;
            assert_eq!(TABLE.truncated(file, first * 4096, 1 << 50, NOW), gone);
        }
    }
}

fn bounds(data: &[u8]) {
    let word = |at: usize| data.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    let (Some(offset), Some(length), Some(size)) = (word(0), word(8), word(16)) else { return };
    let pages = Pages::read(offset, length, size);
    assert!(pages.first <= pages.end && pages.end <= size.div_ceil(4096).max(pages.first));
    let partial = read_before_write(offset, length, size);
    assert!(partial.iter().all(|page| page.count() <= 1));
    let mut faulted = Faulted::new(length % 10_000, size);
    let mut at = 0u64;
    for run in data.chunks_exact(2) {
        let first = at.saturating_add(run[0].into());
        at = first.saturating_add(run[1].into());
        if at > size {
            break;
        }
        faulted.mapped(Pages { first, end: at });
    }
    assert!(faulted.pages() <= size);
    assert!(Sample::from_word(offset).missing(faulted.pages(), size) <= size);
}
