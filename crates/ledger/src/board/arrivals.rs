//! Notes the classes in which a process begins to execute a program that no library enters.

use discnice_sys::block::BlockId;

use crate::board::Board;
use crate::primitive::{AtomicU32, Ordering};

/// Groups of classes with such an execution since the last query, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrivals(u32);

impl Arrivals {
    /// Returns true if no class has had such an execution.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the class in this block may be among them.
    #[must_use]
    pub const fn may_be_in(self, block: BlockId) -> bool {
        self.0 & group(block) != 0
    }
}

/// The kernel numbers segments in ascending order; the numbers of files are random.
const fn group(block: BlockId) -> u32 {
    1 << (block.get() & 31)
}

impl Board {
    /// Notes that a member of the class in this block is about to execute such a program, which it has
    /// [announced](crate::outside::Watcher::announce) in the class: the watcher of a thousand classes need not ask
    /// each.
    pub fn announce(&self, block: BlockId) {
        // Release: a watcher that finds the bit finds what was announced in the class.
        self.header.arrivals.fetch_or(group(block), Ordering::Release);
    }

    /// The word that [`Self::announce`] changes: zero while nothing is announced. What announces also wakes what waits for it.
    #[must_use]
    pub fn announcements(&self) -> &AtomicU32 {
        &self.header.arrivals
    }

    /// Returns and clears the classes with such an execution since the last call, which only the
    /// user's watcher makes.
    #[must_use]
    pub fn take_arrivals(&self) -> Arrivals {
        let arrivals = &self.header.arrivals;
        if arrivals.load(Ordering::Relaxed) == 0 {
            return Arrivals::default();
        }
        Arrivals(arrivals.swap(0, Ordering::Acquire))
    }
}
