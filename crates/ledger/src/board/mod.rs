//! Shares among the classes of one user what they know of the others' traffic, and of each other's.
//!
//! There is one block of shared memory for each user. Every class writes its charges into a slot of
//! its own; a process that finds the last observation old makes a new one: what a medium moved,
//! less what the slots explain, is the others' traffic. This needs only the members that do I/O,
//! and none of them waits for the one that observes.

#![allow(unsafe_code, reason = "one cast from raw memory, as in `Class::adopt`")]

mod arrivals;
mod medium;
mod observe;
mod slot;
#[cfg(test)]
mod tests;

use core::ptr::NonNull;

use discnice_units::{Moment, Rate};

use crate::policy::throttle::Thresholds;

pub use arrivals::Arrivals;
pub use medium::{Medium, Moved, Work};
pub use observe::MachineTotals;
pub use slot::Slot;

use crate::layout::Foreign;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// "DiscBord" in ASCII.
const MAGIC: u64 = u64::from_le_bytes(*b"DiscBord");
/// Version of this layout.
const VERSION: u32 = 5;
/// Media that are told apart; further disks count as all disks together.
pub const MEDIA: usize = 16;
/// Classes that are told apart from the others' traffic; further ones count as others.
pub const SLOTS: usize = 1024;
/// The medium that stands for all physical disks together.
pub const ALL_DISKS: usize = 0;
/// The medium that stands for all network interfaces together, of one network namespace at a time.
pub const NETWORK: usize = 1;

/// What the block begins with.
#[derive(Debug)]
#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    /// Slots that have ever been used.
    used: AtomicU32,
    /// When the last observation was made.
    observed: AtomicU64,
    /// For how long tasks had stalled on I/O then, in nanoseconds.
    stalled: AtomicU64,
    high: AtomicU64,
    low: AtomicU64,
    starved: AtomicU64,
    /// One when a class wants to know of the network.
    network: AtomicU32,
    /// See [`Arrivals`].
    arrivals: AtomicU32,
}

/// The block.
#[derive(Debug)]
#[repr(C)]
pub struct Board {
    header: Header,
    media: [Medium; MEDIA],
    slots: [Slot; SLOTS],
}

impl Board {
    /// Bytes of the block.
    pub const SIZE: usize = size_of::<Self>();

    /// Looks at shared memory as a board, and accepts it if it is ours.
    ///
    /// # Errors
    /// Why it is not.
    ///
    /// # Safety
    /// As [`crate::Class::adopt`].
    pub unsafe fn adopt<'a>(start: NonNull<u8>, length: usize) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: long enough, aligned, mapped (the caller), and every bit pattern is valid, for
        // all fields are atomic integers.
        let board: &Self = unsafe { start.cast().as_ref() };
        if board.header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(Foreign::NotAClass);
        }
        match board.header.version.load(Ordering::Relaxed) {
            VERSION => Ok(board),
            other => Err(Foreign::OtherVersion(other)),
        }
    }

    /// Makes a board of fresh zeroed shared memory.
    ///
    /// # Errors
    /// The memory is too short.
    ///
    /// # Safety
    /// As [`crate::Class::adopt`].
    pub unsafe fn create<'a>(start: NonNull<u8>, length: usize) -> Result<&'a Self, Foreign> {
        if length < Self::SIZE {
            return Err(Foreign::Truncated);
        }
        // SAFETY: as in `adopt`.
        let board: &Self = unsafe { start.cast().as_ref() };
        board.header.version.store(VERSION, Ordering::Relaxed);
        board.set_thresholds(&Thresholds::of(Rate::per_second(0)));
        board.media[ALL_DISKS].claim(Medium::ID_OF_ALL_DISKS);
        board.header.magic.store(MAGIC, Ordering::Release);
        Ok(board)
    }

    /// Sets the traffic from which on the others count as busy.
    pub fn set_thresholds(&self, thresholds: &Thresholds) {
        let Thresholds { high, low, starved } = thresholds;
        for (word, rate) in
            [(&self.header.high, high), (&self.header.low, low), (&self.header.starved, starved)]
        {
            word.store(rate.get(), Ordering::Relaxed);
        }
    }

    /// Returns the traffic from which on the others count as busy.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let rate = |word: &AtomicU64| Rate::per_second(word.load(Ordering::Relaxed));
        let Header { high, low, starved, .. } = &self.header;
        Thresholds { high: rate(high), low: rate(low), starved: rate(starved) }
    }

    /// Asks that the network be observed too, from now on.
    pub fn want_network(&self) {
        self.header.network.store(1, Ordering::Relaxed);
    }

    /// Returns true if the network is to be observed.
    #[must_use]
    pub fn wants_network(&self) -> bool {
        self.header.network.load(Ordering::Relaxed) != 0
    }

    /// When the last observation was made.
    #[must_use]
    pub fn observed(&self) -> Moment {
        Moment(self.header.observed.load(Ordering::Acquire))
    }

    /// The media, of which those after [`NETWORK`] are single disks.
    #[must_use]
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// The place of what lies on this disk; [`ALL_DISKS`] for what has no disk of its own (btrfs, overlayfs).
    #[must_use]
    pub fn place(&self, disk: Option<u64>) -> usize {
        disk.map_or(ALL_DISKS, |disk| self.disk(disk))
    }

    /// The place of a disk among the media: one that is not among them yet takes the first free
    /// place, and shares [`ALL_DISKS`] when there is none.
    #[must_use]
    pub fn disk(&self, id: u64) -> usize {
        let mut places = self.media.iter().enumerate().skip(NETWORK + 1);
        places
            .find(|(_, medium)| medium.id() == id || medium.id() == 0 && medium.claim(id))
            .map_or(ALL_DISKS, |(place, _)| place)
    }
}

const _: () = {
    assert!(size_of::<Slot>() == 128);
    assert!(size_of::<Medium>() == 1728);
    assert!(Board::SIZE == 64 + MEDIA * 1728 + SLOTS * 128);
};
