//! The cache detector against a model of the page cache.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::blocks::Pages;
use crate::cache::{Detector, Means, Subject};
use crate::system::{Counts, Probed, Refusal, System};

/// Relation of the caller to the simulated cache's file, and what the file lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Own,
    /// Own, on a file system that stands on another one.
    Stacked,
    Foreign,
    Unmappable,
}

/// A page cache with one file.
#[derive(Debug)]
struct Cache {
    access: Access,
    pages: RefCell<BTreeSet<u64>>,
    questions: Cell<u64>,
}

/// Pages around a fault that are mapped with it.
const WINDOW: u64 = 16;

impl Cache {
    fn held(&self, offset: u64, length: u64) -> u64 {
        self.questions.set(self.questions.get() + 1);
        let pages = Pages::touched(offset, length);
        self.pages.borrow().range(pages.first..pages.end).count() as u64
    }
}

impl System for Cache {
    fn count(&self, _: i32, offset: u64, length: u64) -> Result<Counts, Refusal> {
        match self.access {
            Access::Own => Ok(Counts { cached: self.held(offset, length), dirty: 0 }),
            Access::Stacked => Ok(Counts::default()),
            Access::Foreign => Err(Refusal::Foreign),
            Access::Unmappable => Err(Refusal::Unsupported),
        }
    }

    fn resident(&self, _: i32, offset: u64, length: u64) -> Option<u64> {
        matches!(self.access, Access::Own | Access::Stacked).then(|| self.held(offset, length))
    }

    fn probe(&self, _: i32, offset: u64, length: u64) -> Option<Probed> {
        if self.access == Access::Unmappable {
            return None;
        }
        let pages = Pages::touched(offset, length);
        let (mut cached, mut read) = (0, 0);
        let mut at = pages.first;
        while at < pages.end {
            let end = ((at / WINDOW + 1) * WINDOW).min(pages.end);
            cached += self.pages.borrow().range(at..end).count() as u64;
            if self.pages.borrow_mut().insert(at) {
                read = 1;
                break;
            }
            at = end;
        }
        Some(Probed { cached, read })
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Reads so many pages from there on.
    Read(u64, u64),
    /// A read of this range by another process.
    Elsewhere(u64, u64),
}

fn steps(pages: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..pages, 1u64..40).prop_map(|(at, count)| Step::Read(at, count)),
        1 => (0..pages, 1u64..200).prop_map(|(at, count)| Step::Elsewhere(at, count)),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    //= discnice/3-no-kernel-change
    #[test]
    fn what_counts_is_predicted_exactly(steps in steps(2000), stacked: bool) {
        let access = if stacked { Access::Stacked } else { Access::Own };
        let cache = Cache { access, pages: RefCell::default(), questions: Cell::new(0) };
        let (detector, file) = (Detector::new(), Subject { fd: 3, size: 2000 * 4096 });
        for step in steps {
            match step {
                Step::Read(at, count) => {
                    let pages = Pages { first: at, end: (at + count).min(2000) };
                    let predicted = detector.missing(&cache, file, pages);
                    let truth = (pages.first..pages.end).filter(|p| cache.pages.borrow_mut().insert(*p)).count();
                    prop_assert_eq!(predicted, truth as u64);
                }
                Step::Elsewhere(at, count) => cache.pages.borrow_mut().extend(at..(at + count).min(2000)),
            }
        }
    }

    //= discnice/4.2-probe
    #[test]
    fn probes_are_exact_up_to_the_first_miss(steps in steps(2000)) {
        let cache = Cache { access: Access::Foreign, pages: RefCell::default(), questions: Cell::new(0) };
        let (detector, file) = (Detector::new(), Subject { fd: 3, size: 2000 * 4096 });
        for step in steps {
            match step {
                Step::Read(at, count) => {
                    let pages = Pages { first: at, end: (at + count).min(2000) };
                    let before = cache.pages.borrow().clone();
                    let predicted = detector.missing(&cache, file, pages);
                    let truth: Vec<u64> = (pages.first..pages.end).filter(|p| !before.contains(p)).collect();
                    prop_assert!(predicted >= truth.len() as u64, "no miss is overlooked");
                    let first = truth.first().map_or(pages.end, |page| page / WINDOW * WINDOW + WINDOW);
                    let behind = pages.end.saturating_sub(first.max(pages.first));
                    prop_assert!(predicted <= truth.len() as u64 + behind + 1, "and one page for the question");
                    cache.pages.borrow_mut().extend(pages.first..pages.end);
                }
                Step::Elsewhere(at, count) => cache.pages.borrow_mut().extend(at..(at + count).min(2000)),
            }
        }
    }
}

#[test]
fn what_cannot_be_seen_is_taken_to_be_missing() {
    let cache = Cache {
        access: Access::Unmappable,
        pages: RefCell::new((0..100).collect()),
        questions: Cell::new(0),
    };
    let detector = Detector::new();
    let file = Subject { fd: 3, size: 100 * 4096 };
    assert_eq!(detector.missing(&cache, file, Pages { first: 5, end: 9 }), 4);
    assert_eq!(detector.means(), Means::None);
}

//= discnice/4.2-reuse
//= discnice/4.2-region
#[test]
fn a_cached_file_is_hardly_asked_about() {
    let pages = 10_000;
    let cache = Cache {
        access: Access::Own,
        pages: RefCell::new((0..pages).collect()),
        questions: Cell::new(0),
    };
    let (detector, file) = (Detector::new(), Subject { fd: 3, size: pages * 4096 });
    for step in 0..20_000 {
        let page = step * 7919 % pages;
        assert_eq!(detector.missing(&cache, file, Pages { first: page, end: page + 1 }), 0);
    }
    assert!(cache.questions.get() < 40, "{}", cache.questions.get());
}
