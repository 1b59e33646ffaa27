//! In which classes somebody begins to execute a program that no library enters.

use crate::board::Board;
use crate::primitive::Ordering;

/// Groups of classes in which that happened since the last question, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrivals(u32);

impl Arrivals {
    /// Whether it happened in none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the class in this segment may be among them.
    #[must_use]
    pub const fn may_be_in(self, segment: i32) -> bool {
        self.0 & group(segment) != 0
    }
}

/// The kernel numbers segments in ascending order.
const fn group(segment: i32) -> u32 {
    1 << (segment & 31)
}

impl Board {
    /// Somebody in the class in this segment is about to execute such a program, and has
    /// [announced](crate::outside::Watcher::announce) it there: who watches a thousand classes need not ask each.
    pub fn announce(&self, segment: i32) {
        // Release: who finds the bit finds what was announced in the class.
        self.header.arrivals.fetch_or(group(segment), Ordering::Release);
    }

    /// Where that happened since the last call, of which only the user's watcher makes any.
    #[must_use]
    pub fn take_arrivals(&self) -> Arrivals {
        let arrivals = &self.header.arrivals;
        if arrivals.load(Ordering::Relaxed) == 0 {
            return Arrivals::default();
        }
        Arrivals(arrivals.swap(0, Ordering::Acquire))
    }
}
