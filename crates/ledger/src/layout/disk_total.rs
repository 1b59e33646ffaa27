//! The bytes that a class may move in all: when they are used up its calls wait until it gets more.
//!
//! That is one bit of the word that every call looks at first, so a class without such a total pays nothing, and one with a
//! total pays for one comparison when a call is settled.

use discnice_units::Bytes;

use crate::layout::Class;
use crate::layout::header::USED_UP;
use crate::primitive::{AtomicU64, Ordering};

/// What is set, and since when it is counted.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct DiskTotal {
    /// Bytes; zero for no bound.
    most: AtomicU64,
    /// What the class had moved when the count began.
    from: AtomicU64,
}

impl Class {
    /// The bytes that the class may move in all; `None` without a bound.
    #[must_use]
    pub fn disk_total(&self) -> Option<Bytes> {
        let most = self.disk_total.most.load(Ordering::Relaxed);
        (most > 0).then(|| Bytes::new(most))
    }

    /// How many of them it has moved; without a bound, since it was made.
    #[must_use]
    pub fn disk_total_used(&self) -> Bytes {
        let from = self.disk_total.from.load(Ordering::Relaxed);
        Bytes::new(self.total().total().saturating_sub(from))
    }

    /// Returns true if it has moved all of them: calls that would move more wait.
    #[inline]
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.header.limited.load(Ordering::Relaxed) & USED_UP != 0
    }

    /// Begins to count anew. [`Class::mind_disk_total`] then takes note.
    pub fn count_anew(&self) {
        self.disk_total.from.store(self.total().total(), Ordering::Relaxed);
    }

    /// Sets the bound. One that replaces another goes on counting, so that it raises or lowers that.
    pub(super) fn set_disk_total(&self, most: Option<Bytes>) {
        let most = most.map_or(0, Bytes::get);
        if self.disk_total.most.swap(most, Ordering::Relaxed) == 0 {
            self.count_anew();
        }
    }

    /// Notes whether all is used up; returns true if that has changed. The caller then wakes the threads that wait on
    /// [`Class::changes`].
    pub fn mind_disk_total(&self) -> bool {
        if self.disk_total.most.load(Ordering::Relaxed) == 0 && !self.is_used_up() {
            return false;
        }
        let (order, load, used_up) = (Ordering::Release, Ordering::Relaxed, self.used_up());
        let replaced = self.header.limited.fetch_update(order, load, |old| {
            let new = old & !USED_UP | used_up;
            (new != old).then_some(new)
        });
        if replaced.is_ok() {
            self.note_change();
        }
        replaced.is_ok()
    }

    /// [`USED_UP`], if it is.
    pub(super) fn used_up(&self) -> u32 {
        let is_used_up = self.disk_total().is_some_and(|most| self.disk_total_used() >= most);
        if is_used_up { USED_UP } else { 0 }
    }
}
