//! A set of descriptors, which any thread may change at any moment.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::table::LIMIT;

const WORDS: usize = LIMIT / 64;

/// The set; numbers from [`LIMIT`] on are never in it.
#[derive(Debug)]
pub struct Set {
    words: [AtomicU64; WORDS],
    /// The words up to here may have bits.
    end: AtomicUsize,
    /// How many are in the set; a race makes it wrong for a moment only.
    count: AtomicU32,
}

impl Set {
    /// The empty set.
    #[allow(clippy::new_without_default, reason = "only statics hold one")]
    pub const fn new() -> Self {
        Self {
            words: [const { AtomicU64::new(0) }; WORDS],
            end: AtomicUsize::new(0),
            count: AtomicU32::new(0),
        }
    }

    /// Returns true if nothing is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Puts a descriptor into the set.
    pub fn insert(&self, fd: i32) {
        let (word, bit) = place(fd);
        let Some(set) = self.words.get(word) else { return };
        self.end.fetch_max(word + 1, Ordering::Relaxed);
        if set.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a descriptor out of the set, unless `belongs` says that it belongs there. It is asked afterwards: a thread that
    /// finds a reason at the same moment and then puts the descriptor into the set may find it there still.
    pub fn remove(&self, fd: i32, belongs: impl Fn() -> bool) {
        let (word, bit) = place(fd);
        if let Some(set) = self.words.get(word)
            && set.fetch_and(!bit, Ordering::AcqRel) & bit != 0
        {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        if belongs() {
            self.insert(fd);
        }
    }

    /// Calls `each` for every descriptor in the set.
    pub fn for_each(&self, mut each: impl FnMut(i32)) {
        for (number, word) in self.used().enumerate() {
            each_bit(number, word.load(Ordering::Acquire), &mut each);
        }
    }

    /// Empties the set, and calls `each` for every descriptor that was in it. No other thread may change it meanwhile.
    pub fn clear(&self, mut each: impl FnMut(i32)) {
        for (number, word) in self.used().enumerate() {
            each_bit(number, word.swap(0, Ordering::Relaxed), &mut each);
        }
        self.count.store(0, Ordering::Relaxed);
    }

    fn used(&self) -> impl Iterator<Item = &AtomicU64> {
        self.words.iter().take(self.end.load(Ordering::Relaxed))
    }
}

const fn place(fd: i32) -> (usize, u64) {
    (fd as u32 as usize / 64, 1 << (fd as u32 % 64))
}

fn each_bit(number: usize, mut bits: u64, each: &mut impl FnMut(i32)) {
    while bits != 0 {
        each((number * 64) as i32 + bits.trailing_zeros() as i32);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn contents(set: &Set) -> Vec<i32> {
        let mut all = Vec::new();
        set.for_each(|fd| all.push(fd));
        all
    }

    #[test]
    fn descriptors_are_in_the_set_until_they_are_removed() {
        let set = Set::new();
        for fd in [700, 3, 64, 3, LIMIT as i32 - 1, LIMIT as i32, -1] {
            set.insert(fd);
        }
        assert_eq!(contents(&set), [3, 64, 700, LIMIT as i32 - 1]);
        set.remove(64, || false);
        set.remove(64, || false);
        set.remove(3, || true);
        assert_eq!((contents(&set), set.is_empty()), (vec![3, 700, LIMIT as i32 - 1], false));
        let mut cleared = Vec::new();
        set.clear(|fd| cleared.push(fd));
        assert_eq!((cleared, set.is_empty()), (vec![3, 700, LIMIT as i32 - 1], true));
        assert!(contents(&set).is_empty());
    }

    /// One thread takes a descriptor's last reason away while another thread adds one.
    #[test]
    fn a_reason_that_comes_meanwhile_keeps_a_descriptor_in_the_set() {
        const ROUNDS: u32 = 20_000;
        let (first, second) = (1, 2);
        let (set, reasons, round) = (Set::new(), AtomicU32::new(0), AtomicU32::new(0));
        let until = |begun| {
            while round.load(Ordering::Acquire) < begun {
                thread::yield_now();
            }
        };
        let add = |reason| {
            reasons.fetch_or(reason, Ordering::Release);
            set.insert(5);
        };
        let take = |reason: u32| {
            if reasons.fetch_and(!reason, Ordering::AcqRel) & !reason == 0 {
                set.remove(5, || reasons.load(Ordering::Acquire) != 0);
            }
        };
        let lost = thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..ROUNDS {
                    until(2 * number + 1);
                    add(second);
                    round.store(2 * number + 2, Ordering::Release);
                }
            });
            let is_lost = |number: &u32| {
                add(first);
                round.store(2 * number + 1, Ordering::Release);
                take(first);
                until(2 * number + 2);
                let is_lost = contents(&set) != [5] || set.is_empty();
                take(second);
                is_lost
            };
            (0..ROUNDS).filter(is_lost).count()
        });
        assert_eq!(
            (lost, contents(&set).len(), set.is_empty()),
            (0, 0, true),
            "of {ROUNDS} rounds"
        );
    }
}
