//! How often the thread gave up the processor to wait, and how often it lost it otherwise.

use core::cell::Cell;

/// Most disk waits attributed to one call on names or directories: fts_read(3) makes several system
/// calls at once.
const WAITS: u32 = 64;

/// Context switches when last read.
#[derive(Debug, Default)]
pub struct Switches {
    voluntary: Cell<u64>,
    involuntary: Cell<u64>,
    /// Voluntary ones during the last call on names or directories.
    waited: Cell<u32>,
}

impl Switches {
    /// Notes the voluntary switches so far.
    pub(super) fn note(&self, voluntary: u64) {
        self.voluntary.set(voluntary);
    }

    /// Notes both, so that later ones count as new.
    pub(crate) fn note_both(&self, (voluntary, involuntary): (u64, u64)) {
        self.voluntary.set(voluntary);
        self.involuntary.set(involuntary);
    }

    /// Notes both; returns true if the thread has waited since they were last read.
    pub(crate) fn note_and_compare(&self, (voluntary, involuntary): (u64, u64)) -> bool {
        self.involuntary.set(involuntary);
        self.take_waits(voluntary) > 0
    }

    /// Notes both; returns whether the thread has waited since, and whether it lost the processor.
    pub(super) fn note_and_tell(&self, (voluntary, involuntary): (u64, u64)) -> (bool, bool) {
        let waited = self.take_waits(voluntary) > 0;
        (waited, self.involuntary.replace(involuntary) != involuntary)
    }

    /// Returns how often the last call on names or directories waited.
    #[must_use]
    pub fn waited(&self) -> u32 {
        self.waited.get()
    }

    /// Notes how often the last call on names or directories waited.
    pub(super) fn note_waited(&self, waited: u32) {
        self.waited.set(waited);
    }

    /// Returns the waits since the last call. A forked child's count starts anew, which shows as a
    /// smaller one.
    pub(super) fn take_waits(&self, voluntary: u64) -> u32 {
        let before = self.voluntary.replace(voluntary);
        let new = voluntary.checked_sub(before).unwrap_or(voluntary);
        u32::try_from(new).unwrap_or(u32::MAX).min(WAITS)
    }
}
