//! What is known about one descriptor.

mod reading;
mod writing;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use discnice_estimator::cache::Detector;
use discnice_estimator::file_systems::FILE_SYSTEMS;
use discnice_estimator::regions::FileKey;
use discnice_ledger::board::MEDIA;

use crate::host::FileStatus;

/// Cannot reach a disk.
const OTHER: u32 = 1;
/// Can reach a disk.
const DISK: u32 = 1 << 1;
/// A regular file.
const REGULAR: u32 = 1 << 2;
/// The kernel's read-ahead is off, by us.
const SHAPED: u32 = 1 << 3;
/// The program asked for no read-ahead: then we do none either.
const PROGRAM_RANDOM: u32 = 1 << 4;
/// The program asked for more read-ahead, which we give back when the limit is lifted.
const PROGRAM_SEQUENTIAL: u32 = 1 << 5;
/// Reads come in order and miss the cache: we read ahead.
const STREAM: u32 = 1 << 6;
/// Writes hit pages that are dirty already.
const REWRITES: u32 = 1 << 7;
/// A socket, which may reach a network; such a descriptor is OTHER as well.
const SOCKET: u32 = 1 << 8;
/// Every call is predicted.
const PREDICTED: u32 = 1 << 9;
/// How it writes is known: the next three.
const MODE_KNOWN: u32 = 1 << 10;
const APPENDS: u32 = 1 << 11;
const DIRECT: u32 = 1 << 12;
const SYNCHRONOUS: u32 = 1 << 13;
/// Flag: the file was emptied when it was opened, or had names before; file systems write it when
/// it is closed.
const EMPTIED: u32 = 1 << 14;
/// The kernel has read ahead although it should not, and will go on from there.
const RUN_AHEAD: u32 = 1 << 15;
/// The number of an error that its next fsync(2) or close(2) returns; the kernel's numbers end below 134, those of
/// disks at 122 (EDQUOT).
const OWED_SHIFT: u32 = 17;
const OWED_MASK: u32 = 0x7f << OWED_SHIFT;
/// The slot of its file system.
const SLOT_SHIFT: u32 = 24;
const SLOT_MASK: u32 = (FILE_SYSTEMS as u32 - 1) << SLOT_SHIFT;
/// Flag: the file was made, where it must be known if it is tiny when it is closed.
const MADE: u32 = 1 << 29;
/// The program doubled the kernel's read-ahead windows, and we have halved them again.
const HALVED: u32 = 1 << 30;
/// Nothing of it was cached when it was opened: what we read of it leaves the cache.
const FOREIGN: u32 = 1 << 31;
/// How [`File::placed`] is divided.
const PLACE_BITS: u32 = 4;
const PLACE_MASK: u8 = (1 << PLACE_BITS) - 1;
const _: () = assert!(MEDIA <= 1 << PLACE_BITS);
const _: () = assert!(FILE_SYSTEMS.is_power_of_two() && SLOT_MASK < MADE);

/// Hints about one descriptor; all zeroes means that nothing is known.
///
/// Threads that use one descriptor at once may mix their hints up. That is why they are hints.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct File {
    flags: AtomicU32,
    /// Read-ahead slices in a row that found everything cached.
    dry: AtomicU16,
    /// Pages that were rewritten unasked since the kernel was asked which are dirty.
    unasked: AtomicU8,
    /// The place of its medium on the board, and in the upper half the epoch of the class in which that was found; zero for
    /// none.
    placed: AtomicU8,
    /// Offset at which a sequential reader would read next.
    next: AtomicU64,
    /// Up to where a stream has been read ahead and paid for.
    paid: AtomicU64,
    /// Length of the next slice.
    ramp: AtomicU64,
    /// Bytes dirtied since write-back was last started.
    dirtied: AtomicU64,
    /// Lowest and highest offset written since then.
    low: AtomicU64,
    high: AtomicU64,
    /// The descriptor's own offset when write-back was last started.
    from: AtomicU64,
    /// What is known to be cached.
    pub(crate) detector: Detector,
    /// The descriptor's own offset plus one, as far as we have followed it; zero when we have not.
    position: AtomicU64,
    /// `FileKey::get`, or zero.
    key: AtomicU64,
    /// Bytes known to be dirty: from, to.
    dirty_low: AtomicU64,
    dirty_high: AtomicU64,
    /// How far apart the last reads ended that missed, in bytes.
    step: AtomicU32,
    /// The very last one did not.
    jumped: AtomicBool,
    /// Bytes were written at the descriptor's own offset, which was not asked for, since write-back was
    /// last started.
    own: AtomicBool,
    /// Portions that were dropped from the cache while it is read.
    dropped: AtomicU16,
}

const _: () = assert!(size_of::<File>() == 128);

/// Relaxed everywhere: hints publish nothing.
const R: Ordering = Ordering::Relaxed;

impl File {
    /// What prediction keeps of each, in bytes: from `detector` to `dirty_high`.
    pub const PREDICTION: usize =
        core::mem::offset_of!(Self, step) - core::mem::offset_of!(Self, detector);

    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            flags: AtomicU32::new(0),
            dry: AtomicU16::new(0),
            unasked: AtomicU8::new(0),
            placed: AtomicU8::new(0),
            next: AtomicU64::new(0),
            paid: AtomicU64::new(0),
            ramp: AtomicU64::new(0),
            dirtied: AtomicU64::new(0),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
            from: AtomicU64::new(0),
            detector: Detector::new(),
            position: AtomicU64::new(0),
            key: AtomicU64::new(0),
            dirty_low: AtomicU64::new(0),
            dirty_high: AtomicU64::new(0),
            step: AtomicU32::new(0),
            jumped: AtomicBool::new(false),
            own: AtomicBool::new(false),
            dropped: AtomicU16::new(0),
        }
    }

    /// Forgets everything: the descriptor was opened, closed or replaced.
    #[inline]
    pub fn forget(&self) {
        if !self.is_blank() {
            self.flags.store(0, R);
            self.unasked.store(0, R);
            self.placed.store(0, R);
            self.next.store(0, R);
            self.step.store(0, R);
            self.jumped.store(false, R);
            self.dirtied.store(0, R);
            self.from.store(0, R);
            self.own.store(false, R);
            self.dropped.store(0, R);
            self.detector.forget();
            self.position.store(0, R);
            self.key.store(0, R);
            self.forget_dirty();
        }
    }

    /// Forgets everything but an error that it owes: this is a forked child's copy.
    pub fn inherit(&self) {
        let owed = self.flags.load(R) & OWED_MASK;
        self.forget();
        self.flags.fetch_or(owed, R);
    }

    fn has(&self, flag: u32) -> bool {
        self.flags.load(R) & flag != 0
    }

    fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, R);
        } else {
            self.flags.fetch_and(!flag, R);
        }
    }

    /// Nothing is known.
    #[inline(always)]
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.flags.load(R) == 0
    }

    /// Known not to reach a disk.
    #[inline(always)]
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.has(OTHER)
    }

    /// Known to reach a disk.
    #[inline(always)]
    #[must_use]
    pub fn is_disk(&self) -> bool {
        self.has(DISK)
    }

    /// The kernel's read-ahead is its own, and we do none: a class without limit has nothing to undo.
    #[inline(always)]
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.flags.load(R) & (SHAPED | HALVED | STREAM) == 0
    }

    /// Every call on it is predicted.
    #[inline(always)]
    #[must_use]
    pub fn is_predicted(&self) -> bool {
        self.has(PREDICTED)
    }

    pub(crate) fn set_predicted(&self, on: bool) {
        if self.is_predicted() != on {
            self.set(PREDICTED, on);
        }
    }

    /// Returns the offset of a call: `at`, else the descriptor's own offset, if that is known.
    pub(crate) fn place(&self, at: Option<u64>) -> Option<u64> {
        at.or_else(|| self.position.load(R).checked_sub(1))
    }

    /// Records the descriptor's own offset; `None` if it is unknown.
    #[inline]
    pub fn set_position(&self, position: Option<u64>) {
        if self.flags.load(R) != 0 {
            self.position.store(position.map_or(0, |at| at.wrapping_add(1)), R);
        }
    }

    /// A call moved the descriptor's own offset on.
    #[inline(always)]
    pub fn moved(&self, bytes: isize) {
        let position = self.position.load(R);
        if position > 0 && bytes > 0 {
            self.position.store(position.wrapping_add(bytes as u64), R);
        }
    }

    /// The slot of the file system, and the file's key.
    pub(crate) fn identity(&self) -> Option<(usize, FileKey)> {
        let slot = ((self.flags.load(R) & SLOT_MASK) >> SLOT_SHIFT) as usize;
        Some((slot, FileKey::from_number(self.key.load(R))?))
    }

    pub(crate) fn set_identity(&self, slot: usize, key: FileKey) {
        self.flags.fetch_and(!SLOT_MASK, R);
        self.flags.fetch_or(((slot as u32) << SLOT_SHIFT) & SLOT_MASK, R);
        self.key.store(key.get(), R);
    }

    /// Returns true if it is known what the descriptor refers to.
    #[inline(always)]
    #[must_use]
    pub fn is_classified(&self) -> bool {
        self.has(DISK | OTHER)
    }

    /// Returns true for a socket that may reach a network.
    #[inline(always)]
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.has(SOCKET)
    }

    /// Marks a socket that never reaches a network; from here on it is treated like a pipe.
    pub fn exempt(&self) {
        self.set(SOCKET, false);
    }

    pub(crate) fn classify(&self, status: &FileStatus) {
        self.set(DISK | OTHER | REGULAR | SOCKET, false);
        self.set(SOCKET, status.socket);
        self.set(REGULAR, status.regular);
        // Set last: a thread that sees the descriptor classified then sees all the rest.
        self.set(if status.disk { DISK } else { OTHER }, true);
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.has(REGULAR)
    }

    /// The place of its medium on the board, if that was found in this epoch of the class.
    pub(crate) fn place_in(&self, epoch: u8) -> Option<usize> {
        let placed = self.placed.load(R);
        (placed >> PLACE_BITS == epoch).then(|| usize::from(placed & PLACE_MASK))
    }

    pub(crate) fn set_place(&self, epoch: u8, place: usize) {
        self.placed.store(epoch << PLACE_BITS | place as u8 & PLACE_MASK, R);
    }
}
