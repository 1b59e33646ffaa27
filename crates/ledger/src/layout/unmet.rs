//! Conditions that jobs of the class wait for, as found by the processes that check them.

use crate::policy::Conditions;

use crate::layout::Class;
use crate::primitive::{AtomicU32, Ordering};

/// The conditions.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Unmet(AtomicU32);

impl Class {
    /// The conditions that a job of the class waits for.
    #[must_use]
    pub fn unmet(&self) -> Conditions {
        Conditions::from_bits(self.unmet.0.load(Ordering::Relaxed))
    }

    /// Says which conditions a job of the class waits for.
    pub fn set_unmet(&self, conditions: Conditions) {
        self.unmet.0.store(conditions.bits(), Ordering::Relaxed);
    }
}
