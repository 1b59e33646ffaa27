//! Recorded traces (eval/benches/trace.py): the prediction of each read against what the kernel charged for it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::blocks::Pages;
use crate::cache::{Detector, Subject};
use crate::system::{Counts, Probed, Refusal, System};

/// The page cache as it was recorded.
#[derive(Debug, Default)]
struct Recorded {
    cached: RefCell<BTreeSet<u64>>,
    /// Set for another user's file, about which neither cachestat nor mincore tells.
    foreign: bool,
}

/// Pages that the kernel maps around a fault.
const WINDOW: u64 = 16;

impl Recorded {
    fn held(&self, offset: u64, length: u64) -> u64 {
        let pages = Pages::touched(offset, length);
        self.cached.borrow().range(pages.first..pages.end).count() as u64
    }
}

impl System for Recorded {
    fn count(&self, _: i32, offset: u64, length: u64) -> Result<Counts, Refusal> {
        let counts = Counts { cached: self.held(offset, length), dirty: 0 };
        if self.foreign { Err(Refusal::Foreign) } else { Ok(counts) }
    }

    fn resident(&self, _: i32, offset: u64, length: u64) -> Option<u64> {
        (!self.foreign).then(|| self.held(offset, length))
    }

    fn probe(&self, _: i32, offset: u64, length: u64) -> Option<Probed> {
        let pages = Pages::touched(offset, length);
        let (mut cached, mut at) = (0, pages.first);
        while at < pages.end {
            let end = ((at / WINDOW + 1) * WINDOW).min(pages.end);
            cached += self.cached.borrow().range(at..end).count() as u64;
            if self.cached.borrow_mut().insert(at) {
                return Some(Probed { cached, read: 1 });
            }
            at = end;
        }
        Some(Probed { cached, read: 0 })
    }
}

/// What was predicted and what was charged, in bytes, of all reads of a trace; `exact` counts the reads of
/// both agree.
#[derive(Debug, Default)]
struct Replayed {
    predicted: u64,
    charged: u64,
    reads: u64,
    exact: u64,
}

fn replay(trace: &str, foreign: bool) -> Replayed {
    let cache = Recorded { foreign, ..Recorded::default() };
    let (detector, mut size, mut sum) = (Detector::new(), 0, Replayed::default());
    for line in trace.lines() {
        let mut words = line.split(' ');
        let kind = words.next().expect("a word");
        if kind == "cached" {
            let range = |word: &str| {
                let (first, end) = word.split_once('-').expect("a range");
                number(first)..number(end)
            };
            *cache.cached.borrow_mut() = words.flat_map(range).collect();
            // The cache was dropped; a reader notices by the time that reads take.
            detector.forget_region();
            continue;
        }
        let numbers: Vec<u64> = words.map(number).collect();
        match (kind, numbers.as_slice()) {
            ("size", [bytes]) => size = *bytes,
            ("read", [offset, length, charged]) => {
                let pages = Pages::read(*offset, *length, size);
                let missing = detector.missing(&cache, Subject { fd: 3, size }, pages);
                cache.cached.borrow_mut().extend(pages.first..pages.end);
                sum.predicted += missing * 4096;
                sum.charged += charged;
                sum.reads += 1;
                sum.exact += u64::from(missing * 4096 == *charged);
            }
            _ => panic!("{line:?} is no step"),
        }
    }
    sum
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

const TRACES: [(&str, &str); 3] = [
    ("ext4", include_str!("../../fixtures/ext4.trace")),
    ("xfs", include_str!("../../fixtures/xfs.trace")),
    ("btrfs", include_str!("../../fixtures/btrfs.trace")),
];

//= discnice/4.3-cached-is-free
#[test]
fn reads_of_own_files_are_predicted_exactly() {
    for (name, trace) in TRACES {
        let sum = replay(trace, false);
        assert!(sum.reads > 400 && sum.charged > 1 << 21, "{name}: {sum:?}");
        assert_eq!((sum.predicted, sum.exact), (sum.charged, sum.reads), "{name}: {sum:?}");
    }
}

#[test]
fn reads_of_others_files_are_predicted_within_a_tenth() {
    for (name, trace) in TRACES {
        let sum = replay(trace, true);
        assert!(sum.predicted >= sum.charged, "{name}: no miss is overlooked: {sum:?}");
        // A random read of several pages in patches of cached ones is the worst case for probes.
        assert!(sum.predicted - sum.charged < sum.charged / 10, "{name}: {sum:?}");
    }
}
