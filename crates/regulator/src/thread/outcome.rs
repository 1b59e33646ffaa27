//! What became of the call that the thread makes, for a trace.

use core::cell::Cell;

use discnice_ledger::trace::Why;
use discnice_units::Nanos;

/// What became of a call, for a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Why it went on when it did.
    pub why: Why,
    /// Bytes that were reserved for it.
    pub predicted: u64,
    /// Bytes that were charged at its end.
    pub charged: u64,
}

/// The outcome of the present call, as far as it is known.
#[derive(Debug, Default)]
pub struct Outcomes {
    why: Cell<Why>,
    predicted: Cell<u64>,
    charged: Cell<u64>,
    /// How long the thread has been held since the outcome was taken.
    held: Cell<u64>,
}

impl Outcomes {
    /// Notes why the call goes on.
    #[inline(always)]
    pub fn because(&self, why: Why) {
        self.why.set(why);
    }

    /// Returns why the call goes on, as far as it was noted.
    #[must_use]
    pub fn why(&self) -> Why {
        self.why.get()
    }

    /// Adds what was reserved for the call and what it was charged.
    pub fn add(&self, reserved: u64, moved: u64) {
        self.predicted.set(self.predicted.get().saturating_add(reserved));
        self.charged.set(self.charged.get().saturating_add(moved));
    }

    /// Sums up how long the thread is held.
    #[must_use]
    pub const fn held(&self) -> &Cell<u64> {
        &self.held
    }

    /// Returns and clears what became of the calls since the last time, and how long they were held.
    pub fn take(&self) -> (Outcome, Nanos) {
        let (predicted, charged) = (self.predicted.take(), self.charged.take());
        (Outcome { why: self.why.take(), predicted, charged }, Nanos(self.held.take()))
    }
}
