//! What the thread's last calls found in the page cache.

use core::cell::Cell;

/// Successive probes that found everything cached after which reads pass without one. A slow read
/// that did not wait (the machine was busy otherwise, or the disk is very fast) subtracts some. A
/// whole round between looks without a slow read adds some, up to a maximum.
pub(super) const TRUSTED: u32 = 16;
pub(super) const DOUBTED: u32 = 8;
const ROUND: u32 = 16;
pub(super) const TRUSTED_MOST: u32 = 128;

/// What the last look and the last probes found.
#[derive(Debug, Default)]
pub struct Cache {
    /// The last look found that the disk had not been read.
    hit: Cell<bool>,
    /// Probes in a row that found all that was asked for.
    found: Cell<u32>,
}

impl Cache {
    /// Returns true if the next call is likely to read the disk: as the last look found, or if
    /// there was none yet.
    #[inline]
    #[must_use]
    pub fn missed(&self) -> bool {
        !self.hit.get()
    }

    /// Notes what a look found: `missed` says that the disk had been read.
    pub(super) fn note(&self, missed: bool) {
        self.hit.set(!missed);
    }

    /// Marks the next call as likely to read the disk.
    pub(crate) fn expect_miss(&self) {
        self.hit.set(false);
    }

    /// Returns true if reads may pass without a probe.
    #[inline(always)]
    #[must_use]
    pub fn finds_all(&self) -> bool {
        self.found.get() >= TRUSTED
    }

    /// Notes whether a probe found all that was asked for.
    pub(crate) fn note_probe(&self, found_all: bool) {
        let found = self.found.get().saturating_add(1).min(TRUSTED_MOST);
        self.found.set(if found_all { found } else { 0 });
    }

    /// Notes a slow read that passed without a probe: whether it `waited`, and if not, whether the
    /// loss of the processor `excused` it.
    pub(super) fn note_slow(&self, waited: bool, excused: bool) {
        let found = self.found.get();
        self.found.set(match (waited, excused) {
            (true, _) => 0,
            (false, true) => found,
            (false, false) => found.saturating_sub(DOUBTED),
        });
    }

    /// Notes a round of reads that passed without a probe, none of them slow.
    pub(crate) fn note_round(&self) {
        let found = self.found.get().saturating_add(ROUND);
        self.found.set(found.min(TRUSTED_MOST));
    }
}
