//! How many calls went on for which reason, and how many bytes they moved: for `discnice status --why`.
//!
//! A thread counts its own calls and adds them here whenever it looks at its account. So what is here is a
//! moment old, and the last calls of a thread that ended between two looks are missing.

use crate::primitive::{AtomicU64, Ordering};
use crate::trace::Why;

/// What decides about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Decider {
    /// The library, in the program.
    Library = 0,
    /// The supervisor of a seccomp filter.
    Filter = 1,
    /// The watcher, which looks at accounts instead of calls.
    Watcher = 2,
}

impl Decider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Library, Self::Filter, Self::Watcher];
}

/// Calls that went on for one reason, or looks at an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Calls.
    pub calls: u64,
    /// Bytes that they moved, or asked for where what they moved is not seen.
    pub bytes: u64,
}

#[derive(Debug)]
#[repr(C)]
struct Cell {
    calls: AtomicU64,
    bytes: AtomicU64,
}

/// One count for each reason of each of those that decide.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Passed {
    cells: [[Cell; Why::ALL.len()]; Decider::ALL.len()],
}

impl Passed {
    /// Adds calls.
    pub fn add(&self, by: Decider, why: Why, count: Count) {
        let cell = self.cells.get(by as usize).and_then(|cells| cells.get(why as usize));
        if let Some(cell) = cell {
            cell.calls.fetch_add(count.calls, Ordering::Relaxed);
            cell.bytes.fetch_add(count.bytes, Ordering::Relaxed);
        }
    }

    /// Returns what went on for a reason.
    #[must_use]
    pub fn count(&self, by: Decider, why: Why) -> Count {
        let cell = self.cells.get(by as usize).and_then(|cells| cells.get(why as usize));
        cell.map_or(Count::default(), |cell| Count {
            calls: cell.calls.load(Ordering::Relaxed),
            bytes: cell.bytes.load(Ordering::Relaxed),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_count_of_its_own() {
        let cell = || Cell { calls: AtomicU64::new(0), bytes: AtomicU64::new(0) };
        let cells = || core::array::from_fn(|_| cell());
        let passed = Passed { cells: core::array::from_fn(|_| cells()) };
        let places = || Decider::ALL.into_iter().flat_map(|by| Why::ALL.map(|why| (by, why)));
        for (number, (by, why)) in (1..).zip(places()) {
            passed.add(by, why, Count { calls: 1, bytes: number });
            passed.add(by, why, Count { calls: 1, bytes: number });
        }
        for (number, (by, why)) in (1..).zip(places()) {
            assert_eq!(passed.count(by, why), Count { calls: 2, bytes: 2 * number });
        }
    }
}
