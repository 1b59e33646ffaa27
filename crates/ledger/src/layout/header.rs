//! What the block begins with.

use discnice_sys::block::BlockId;
use discnice_units::{Bytes, Moment, Nanos};

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
    /// The resources with a threshold in force now, one bit each, [`PREDICTING`], [`YIELDS`],
    /// [`MINDS_TRAFFIC`], [`TRACED`], [`USED_UP`] and [`COUNTS`]: the first thing that a call looks at.
    pub(super) limited: AtomicU32,
    /// Counts changes of the limits; all waiting threads wait on this word.
    pub(super) changes: AtomicU32,
    pub(super) unlisted: AtomicU32,
    /// The policy and its window.
    pub(super) pace: AtomicU64,
    waits: AtomicU64,
    waited: AtomicU64,
    /// Seconds since 1970.
    pub(super) created: AtomicU64,
    /// Time since which the class has been seen unused, in seconds since 1970; zero while in use.
    idle_since: AtomicU64,
    /// Yes-or-no settings, one bit each.
    pub(super) settings: AtomicU32,
    /// See [`Class::weight`].
    pub(super) weight: AtomicU32,
    /// The class's slot on the board plus one; zero for none.
    slot: AtomicU32,
    /// The id of the board's block plus one; zero for none.
    board: AtomicU64,
    /// The observation that the thresholds follow.
    followed: AtomicU64,
    pub(super) name: [AtomicU64; NAME_MAX.div_ceil(8)],
    /// See [`Class::leave_dirty`].
    left: AtomicU64,
    /// The thresholds of resident memory.
    pub(super) memory: AtomicU64,
    /// The id of the block of the class that this one's first member is a child of, plus one; zero for none.
    parent: AtomicU64,
    /// See [`Class::note_changed_names`].
    changed_names: AtomicU64,
}

/// Charges follow the prediction alone. Above the bits of all resources.
pub(super) const PREDICTING: u32 = 1 << 31;
/// In [`Header::limited`]: the thresholds hold only while others are busy, so that a member must
/// observe if they are.
pub(super) const YIELDS: u32 = 1 << 30;
/// In [`Header::limited`]: there is a threshold of network traffic, which must be told from the
/// others' traffic also while the threshold is not in force.
pub(super) const MINDS_TRAFFIC: u32 = 1 << 29;
/// In [`Header::limited`]: all is moved that the class may move in all.
pub(super) const USED_UP: u32 = 1 << 27;
/// In [`Header::limited`]: there is a bound of what the class may move in all, so that it must be counted soon.
pub(super) const COUNTS: u32 = 1 << 26;

/// In [`Header::limited`]: the members' calls are recorded, so that none passes unexamined.
pub(super) const TRACED: u32 = 1 << 28;

/// Traffic within the machine counts as network traffic.
pub(super) const LOOPBACK: u32 = 1;
/// The class gives way in processor time and memory too.
pub(super) const GUEST: u32 = 1 << 1;
/// The user has paused the class.
const PAUSED: u32 = 1 << 2;
/// What the class reads into the page cache leaves with it.
pub(super) const PROTECTS_CACHE: u32 = 1 << 3;
/// The class gives way on the network by the queue that its connections see.
pub(super) const YIELDS_UPLINK: u32 = 1 << 4;
/// Each child of a member gets a class of its own.
pub(super) const PER_CHILD: u32 = 1 << 5;
/// The thresholds hold only while others are busy.
pub(super) const BUSY: u32 = 1 << 6;

impl Class {
    /// Returns the number that tells this class from a later one in a block with the same id.
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

    /// Notes that the class has been unused since `moment` at the latest; returns since when that
    /// is known. A class that was made for one job is never used again.
    pub fn idle_since(&self, moment: u64) -> u64 {
        let known = self.header.idle_since.compare_exchange(
            0,
            moment,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        known.err().unwrap_or(moment)
    }

    /// The block of the user's board, if the class has one.
    #[must_use]
    pub fn board(&self) -> Option<BlockId> {
        self.header.board.load(Ordering::Relaxed).checked_sub(1).map(BlockId::from_claim)
    }

    /// Says where the user's board is.
    pub fn set_board(&self, block: BlockId) {
        self.header.board.store(block.get().wrapping_add(1), Ordering::Relaxed);
    }

    /// The block of the class that gives this one its limits, as this one's first member is a child of a member of that.
    #[must_use]
    pub fn parent(&self) -> Option<BlockId> {
        self.header.parent.load(Ordering::Relaxed).checked_sub(1).map(BlockId::from_claim)
    }

    /// Says which class gives this one its limits.
    pub fn set_parent(&self, block: BlockId) {
        self.header.parent.store(block.get().wrapping_add(1), Ordering::Relaxed);
    }

    /// Notes that the user's board cannot be used.
    pub fn lose_board(&self) {
        self.header.board.store(0, Ordering::Relaxed);
    }

    /// The class's slot on the board.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.header.slot.load(Ordering::Relaxed).checked_sub(1).map(|slot| slot as usize)
    }

    pub(crate) fn set_slot(&self, slot: usize) {
        self.header.slot.store(slot as u32 + 1, Ordering::Relaxed);
    }

    /// Notes that an observation is followed; returns whether it was not yet.
    pub(super) fn follows(&self, observed: Moment) -> bool {
        self.header.followed.swap(observed.0, Ordering::Relaxed) != observed.0
    }

    /// The word that changes with the limits.
    #[must_use]
    pub fn changes(&self) -> &AtomicU32 {
        &self.header.changes
    }

    /// Notes that members have changed so many names or inodes: each dirties a part of the file system's journal, which is
    /// in no account.
    pub fn note_changed_names(&self, changes: u64) {
        self.header.changed_names.fetch_add(changes, Ordering::Relaxed);
    }

    /// How many names and inodes the members have changed in all.
    #[must_use]
    pub fn changed_names(&self) -> u64 {
        self.header.changed_names.load(Ordering::Relaxed)
    }

    /// Notes that a file was closed with `bytes` of it dirty, to be written by the kernel when it likes;
    /// returns how many were left like this by all members, and not taken back since.
    pub fn leave_dirty(&self, bytes: Bytes) -> Bytes {
        Bytes::new(self.header.left.fetch_add(bytes.get(), Ordering::Relaxed)).plus(bytes)
    }

    /// Notes that so many dirty bytes are gone, because their file was deleted, or on their way to
    /// the disk.
    pub fn take_back_dirty(&self, bytes: Bytes) {
        let relaxed = Ordering::Relaxed;
        // The closure always gives a value.
        let _ = self
            .header
            .left
            .fetch_update(relaxed, relaxed, |left| Some(left.saturating_sub(bytes.get())));
    }

    /// Adds time for which a member has waited; the wait may go on.
    pub fn note_waiting(&self, time: Nanos) {
        self.header.waited.fetch_add(time.0, Ordering::Relaxed);
    }

    /// Adds one wait of a member, which lasted for so long: [`Self::note_waiting`] has added that time.
    pub fn note_wait(&self, time: Nanos) {
        self.header.waits.fetch_add(1, Ordering::Relaxed);
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

    /// Says that all members stand still, or that they go on. [`Self::note_change`] then tells.
    pub fn set_paused(&self, paused: bool) {
        if paused {
            self.header.settings.fetch_or(PAUSED, Ordering::Relaxed);
        } else {
            self.header.settings.fetch_and(!PAUSED, Ordering::Relaxed);
        }
    }

    /// Notes that members or limits have changed; the caller then wakes the threads that wait on [`Class::changes`].
    pub fn note_change(&self) {
        self.header.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns true if the user has paused the class.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.header.settings.load(Ordering::Relaxed) & PAUSED != 0
    }

    /// Changes yes-or-no settings that are limits, and no other.
    pub(super) fn set_settings(&self, settings: u32) {
        let relaxed = Ordering::Relaxed;
        // The closure always gives a value.
        let _ = self
            .header
            .settings
            .fetch_update(relaxed, relaxed, |before| Some(before & PAUSED | settings));
    }

    /// Processes that found no free member slot.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.header.unlisted.load(Ordering::Relaxed)
    }
}
