//! What the block begins with.

use discnice_units::Nanos;

use crate::layout::{Class, NAME_MAX};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::waits::Waits;

/// The first words of the block.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Header {
    pub(super) magic: AtomicU64,
    pub(super) nonce: AtomicU64,
    pub(super) version: AtomicU32,
    /// The resources whose thresholds hold now, one bit each, and [`PREDICTING`]: the first thing
    /// that a call looks at.
    pub(super) limited: AtomicU32,
    /// Counts changes of the limits; everybody who waits does so on this word.
    pub(super) changes: AtomicU32,
    pub(super) unlisted: AtomicU32,
    pub(super) window: AtomicU64,
    waits: AtomicU64,
    waited: AtomicU64,
    /// Seconds since 1970.
    pub(super) created: AtomicU64,
    /// Since when nobody has been seen to use the class, seconds since 1970; zero while in use.
    idle_since: AtomicU64,
    /// Yes-or-no settings, one bit each.
    pub(super) settings: AtomicU32,
    /// Keeps the name aligned.
    _reserved: AtomicU32,
    pub(super) name: [AtomicU64; NAME_MAX.div_ceil(8)],
}

/// Charges follow the prediction alone. Above the bits of all resources.
pub(super) const PREDICTING: u32 = 1 << 31;

/// Traffic within the machine counts as network traffic.
pub(super) const LOOPBACK: u32 = 1;

impl Class {
    /// Tells this class from another one that gets the same segment number later.
    #[must_use]
    pub fn nonce(&self) -> u64 {
        self.header.nonce.load(Ordering::Relaxed)
    }

    /// The name, padded with zeroes.
    #[must_use]
    pub fn name(&self) -> [u8; NAME_MAX] {
        let mut name = [0; NAME_MAX];
        for (chunk, word) in name.chunks_mut(8).zip(&self.header.name) {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        name
    }

    /// When it was made, seconds since 1970.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.header.created.load(Ordering::Relaxed)
    }

    /// Notes that nobody uses the class since `moment` at the latest; returns since when that is
    /// known. A class that was made for one job is never used again.
    pub fn idle_since(&self, moment: u64) -> u64 {
        let known = self.header.idle_since.compare_exchange(
            0,
            moment,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        known.err().unwrap_or(moment)
    }

    /// The word that changes with the limits.
    #[must_use]
    pub fn changes(&self) -> &AtomicU32 {
        &self.header.changes
    }

    /// Adds one wait of a member.
    pub fn note_wait(&self, time: Nanos) {
        self.header.waits.fetch_add(1, Ordering::Relaxed);
        self.header.waited.fetch_add(time.0, Ordering::Relaxed);
        self.waits.add(time);
    }

    /// How long the waits were, each by itself.
    #[must_use]
    pub fn wait_histogram(&self) -> &Waits {
        &self.waits
    }

    /// How often and how long members were held.
    #[must_use]
    pub fn waits(&self) -> (u64, Nanos) {
        let header = &self.header;
        (header.waits.load(Ordering::Relaxed), Nanos(header.waited.load(Ordering::Relaxed)))
    }

    /// Processes that found no free member slot.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.header.unlisted.load(Ordering::Relaxed)
    }
}
