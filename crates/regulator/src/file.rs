//! What is known about one descriptor.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use discnice_estimator::blocks::PAGE;
use discnice_estimator::cache::Detector;
use discnice_estimator::regions::FileKey;

use crate::host::{FileStatus, WriteMode};

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
/// It was emptied when it was opened, or had names before: file systems write it when it is closed.
const EMPTIED: u32 = 1 << 14;
/// The kernel has read ahead although it should not, and will go on from there.
const RUN_AHEAD: u32 = 1 << 15;
/// The disk that it lies on has been noted.
const PLACED: u32 = 1 << 16;
/// The number of an error that its next fsync(2) returns; the kernel's numbers end below 134, those of
/// disks at 122 (EDQUOT).
const OWED_SHIFT: u32 = 17;
const OWED_MASK: u32 = 0x7f << OWED_SHIFT;
/// The slot of its file system.
const SLOT_SHIFT: u32 = 24;

/// Dirtied bytes are counted in whole pages, at both ends.
const ROUNDED: u64 = 2 * PAGE;

/// Hints about one descriptor; all zeroes means that nothing is known.
///
/// Threads that use one descriptor at once may mix their hints up. That is why they are hints.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct File {
    flags: AtomicU32,
    /// Read-ahead slices in a row that found everything cached.
    dry: AtomicU32,
    /// Where a reader in order would read next.
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
    /// Where the descriptor's own offset was when write-back was last started.
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
            dry: AtomicU32::new(0),
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
        }
    }

    /// Forgets everything: the descriptor was opened, closed or replaced.
    #[inline]
    pub fn forget(&self) {
        if !self.is_blank() {
            self.flags.store(0, R);
            self.next.store(0, R);
            self.step.store(0, R);
            self.jumped.store(false, R);
            self.dirtied.store(0, R);
            self.from.store(0, R);
            self.own.store(false, R);
            self.detector.forget();
            self.position.store(0, R);
            self.key.store(0, R);
            self.forget_dirty();
        }
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

    /// Nothing but timing is needed as long as reads hit the cache: we do not read ahead for it.
    #[inline(always)]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.has(STREAM)
    }

    /// Neither shaped nor streaming: a class without limit has nothing to undo.
    #[inline(always)]
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.flags.load(R) & (SHAPED | STREAM) == 0
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

    /// A read that is known to find all its pages in the cache.
    #[inline(always)]
    #[must_use]
    pub fn knows_cached(&self, count: usize, at: Option<u64>) -> bool {
        self.place(at).is_some_and(|at| self.detector.knows(at, count as u64))
    }

    /// Only probes tell what of it is cached, which are dear: where the last reads found all they asked
    /// for, the next one passes without. Its cost, if it has one, is the bytes that it asks for.
    #[inline(always)]
    #[must_use]
    pub fn passes_unprobed(&self) -> bool {
        let wanted = PREDICTED | SHAPED;
        self.flags.load(R) & (wanted | STREAM) == wanted && self.detector.is_probed()
    }

    /// A write that is known to find all its pages dirty.
    #[inline(always)]
    #[must_use]
    pub fn knows_dirty(&self, count: usize, at: Option<u64>) -> bool {
        let covers = |at: u64| {
            let end = at.saturating_add(count as u64);
            at >= self.dirty_low.load(R) && end <= self.dirty_high.load(R)
        };
        self.place(at).is_some_and(covers)
    }

    /// Remembers bytes that are dirty, joined to those known before if they touch.
    pub(crate) fn set_dirty(&self, low: u64, high: u64) {
        let (known_low, known_high) = (self.dirty_low.load(R), self.dirty_high.load(R));
        let joins = low <= known_high && known_low <= high && known_high > 0;
        self.dirty_low.store(if joins { low.min(known_low) } else { low }, R);
        self.dirty_high.store(if joins { high.max(known_high) } else { high }, R);
    }

    pub(crate) fn forget_dirty(&self) {
        self.dirty_low.store(0, R);
        self.dirty_high.store(0, R);
    }

    /// Where a call is made: at `at`, else at the descriptor's own offset, if that is known.
    pub(crate) fn place(&self, at: Option<u64>) -> Option<u64> {
        at.or_else(|| self.position.load(R).checked_sub(1))
    }

    /// The descriptor's own offset is there now; `None` if nobody knows.
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
        let slot = (self.flags.load(R) >> SLOT_SHIFT) as usize;
        Some((slot, FileKey::from_number(self.key.load(R))?))
    }

    pub(crate) fn set_identity(&self, slot: usize, key: FileKey) {
        self.flags.fetch_and(!(u32::MAX << SLOT_SHIFT), R);
        self.flags.fetch_or((slot as u32) << SLOT_SHIFT, R);
        self.key.store(key.get(), R);
    }

    pub(crate) fn write_mode(&self) -> Option<WriteMode> {
        let flags = self.flags.load(R);
        (flags & MODE_KNOWN != 0).then_some(WriteMode {
            append: flags & APPENDS != 0,
            direct: flags & DIRECT != 0,
            synchronous: flags & SYNCHRONOUS != 0,
        })
    }

    pub(crate) fn set_write_mode(&self, mode: WriteMode) {
        self.set(APPENDS, mode.append);
        self.set(DIRECT, mode.direct);
        self.set(SYNCHRONOUS, mode.synchronous);
        self.set(MODE_KNOWN, true);
    }

    /// The program changed the descriptor's flags.
    pub fn forget_write_mode(&self) {
        self.set(MODE_KNOWN, false);
    }

    pub(crate) fn is_emptied(&self) -> bool {
        self.has(EMPTIED)
    }

    pub(crate) fn set_emptied(&self) {
        self.set(EMPTIED, true);
    }

    /// Whether it is known what the descriptor can reach.
    #[inline(always)]
    #[must_use]
    pub fn is_classified(&self) -> bool {
        self.has(DISK | OTHER)
    }

    /// Whether it is a socket that may reach a network.
    #[inline(always)]
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.has(SOCKET)
    }

    /// It is a socket that never reaches a network: from here on it is like a pipe.
    pub fn exempt(&self) {
        self.set(SOCKET, false);
    }

    pub(crate) fn classify(&self, status: &FileStatus) {
        self.set(DISK | OTHER | REGULAR | SOCKET, false);
        self.set(SOCKET, status.socket);
        self.set(REGULAR, status.regular);
        // Last: who sees it classified sees all of it.
        self.set(if status.disk { DISK } else { OTHER }, true);
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.has(REGULAR)
    }

    pub(crate) fn is_shaped(&self) -> bool {
        self.has(SHAPED)
    }

    pub(crate) fn set_shaped(&self, on: bool) {
        self.set(SHAPED, on);
    }

    pub(crate) fn wants_random(&self) -> bool {
        self.has(PROGRAM_RANDOM)
    }

    pub(crate) fn wants_sequential(&self) -> bool {
        self.has(PROGRAM_SEQUENTIAL)
    }

    pub(crate) fn program_wants(&self, random: bool, sequential: bool) {
        self.set(PROGRAM_RANDOM, random);
        self.set(PROGRAM_SEQUENTIAL, sequential);
    }

    /// Writes cost nothing as far as known, because they hit pages that are dirty already.
    #[inline(always)]
    #[must_use]
    pub fn rewrites(&self) -> bool {
        self.has(REWRITES)
    }

    /// The same, if nobody follows what is written where.
    #[inline(always)]
    #[must_use]
    pub fn rewrites_unpredicted(&self) -> bool {
        self.flags.load(R) & (REWRITES | PREDICTED) == REWRITES
    }

    pub(crate) fn set_rewrites(&self, on: bool) {
        self.set(REWRITES, on);
    }

    /// We were told of an error that the program should have been.
    pub(crate) fn owe_error(&self, error: u32) {
        self.flags.fetch_or((error << OWED_SHIFT) & OWED_MASK, R);
    }

    /// The number of the error that the program's fsync(2) must return, once; `None` if there is none.
    #[must_use]
    pub fn take_owed_error(&self) -> Option<i32> {
        if !self.has(OWED_MASK) {
            return None;
        }
        let before = self.flags.fetch_and(!OWED_MASK, R);
        i32::try_from((before & OWED_MASK) >> OWED_SHIFT).ok()
    }

    pub(crate) fn has_run_ahead(&self) -> bool {
        self.has(RUN_AHEAD)
    }

    pub(crate) fn set_run_ahead(&self, on: bool) {
        self.set(RUN_AHEAD, on);
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.has(PLACED)
    }

    pub(crate) fn set_placed(&self) {
        self.set(PLACED, true);
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.has(STREAM)
    }

    /// Starts a stream that has been read up to `position`.
    pub(crate) fn start_stream(&self, position: u64, ramp: u64) {
        self.paid.store(position, R);
        self.ramp.store(ramp, R);
        self.dry.store(0, R);
        self.set(STREAM, true);
    }

    pub(crate) fn end_stream(&self) {
        self.set(STREAM, false);
    }

    pub(crate) fn paid(&self) -> u64 {
        self.paid.load(R)
    }

    pub(crate) fn set_paid(&self, position: u64) {
        self.paid.store(position, R);
    }

    pub(crate) fn ramp(&self) -> u64 {
        self.ramp.load(R)
    }

    pub(crate) fn set_ramp(&self, length: u64) {
        self.ramp.store(length, R);
    }

    /// Counts slices that cost nothing, in a row.
    pub(crate) fn note_slice(&self, cost: u64) -> u32 {
        let dry = if cost == 0 { self.dry.load(R).saturating_add(1) } else { 0 };
        self.dry.store(dry, R);
        dry
    }

    pub(crate) fn next(&self) -> u64 {
        self.next.load(R)
    }

    pub(crate) fn set_next(&self, position: u64) {
        self.next.store(position, R);
    }

    /// A read ended `step` bytes after the last one; zero if that is no step. Returns whether that is
    /// how far it was before, or had been until one jump.
    pub(crate) fn repeats_step(&self, step: u32) -> bool {
        let repeats = step > 0 && self.step.load(R) == step;
        let jumped = !repeats && !self.jumped.load(R);
        self.jumped.store(jumped, R);
        if !repeats && !jumped {
            self.step.store(step, R);
            self.set_ramp(0);
        }
        repeats
    }

    /// Whether a read that ends there is one of the steps that lead to where the last one ended.
    pub(crate) fn steps_to(&self, end: u64) -> bool {
        let rest = self.next().checked_sub(end);
        rest.and_then(|rest| rest.checked_rem(self.step.load(R).into())) == Some(0)
    }

    /// Adds dirtied bytes, of `moved` that were written at `at` or else at the descriptor's own
    /// offset; returns how many are waiting.
    pub(crate) fn add_dirtied(&self, bytes: u64, at: Option<u64>, moved: u64) -> u64 {
        let before = self.dirtied.fetch_add(bytes, R);
        if before == 0 {
            self.low.store(u64::MAX, R);
            self.high.store(0, R);
        }
        // What was dirtied since the last look ends here, if the program writes in order.
        match at {
            Some(at) => {
                let end = at.saturating_add(moved);
                self.low.fetch_min(end.saturating_sub(moved.max(bytes)), R);
                self.high.fetch_max(end, R);
            }
            None => self.own.store(true, R),
        }
        before + bytes
    }

    /// Bytes dirtied since write-back was last started.
    #[must_use]
    pub fn dirtied(&self) -> u64 {
        self.dirtied.load(R)
    }

    /// Takes what to write back: its offset and length, of zero for all up to the end, as
    /// sync_file_range(2) has it; `None` if there is nothing. `position` tells the descriptor's own offset,
    /// if it is needed.
    pub(crate) fn take_dirtied(
        &self,
        position: impl FnOnce() -> Option<u64>,
    ) -> Option<(u64, u64)> {
        let dirtied = self.dirtied.swap(0, R);
        let (mut low, mut high) = (self.low.load(R), self.high.load(R));
        if self.own.swap(false, R)
            && let Some(end) = position()
        {
            let from = self.from.swap(end, R);
            // Linkers write their sections in any order and the header last: then the offset tells nothing.
            let in_order = end.checked_sub(from).is_some_and(|on| on.abs_diff(dirtied) <= ROUNDED);
            if !in_order {
                return Some((0, 0));
            }
            low = low.min(from);
            high = high.max(end);
        }
        high.checked_sub(low).filter(|length| *length > 0).map(|length| (low, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owed_error_is_told_once() {
        let file = File::new();
        file.set_identity(23, FileKey::new(1, 2));
        assert_eq!(file.take_owed_error(), None);
        // EDQUOT, the largest number that disks give.
        file.owe_error(122);
        assert_eq!(file.identity(), Some((23, FileKey::new(1, 2))));
        assert_eq!(file.take_owed_error(), Some(122));
        assert_eq!(file.take_owed_error(), None);
    }

    #[test]
    fn in_order_only_the_new_part_is_written_back() {
        let file = File::new();
        file.add_dirtied(100 << 10, None, 100 << 10);
        assert_eq!(file.take_dirtied(|| Some(99 << 10)), Some((0, 99 << 10)));
        file.add_dirtied(48 << 10, None, 4096);
        assert_eq!(file.take_dirtied(|| Some(150 << 10)), Some((99 << 10, 51 << 10)));
        assert_eq!(file.dirtied(), 0);
    }

    #[test]
    fn of_who_writes_here_and_there_all_is_written_back() {
        let file = File::new();
        file.add_dirtied(100 << 10, None, 64);
        assert_eq!(file.take_dirtied(|| Some(64)), Some((0, 0)), "the header came last");
        file.add_dirtied(8 << 10, None, 4096);
        assert_eq!(file.take_dirtied(|| Some(1 << 20)), Some((0, 0)), "it left a gap");
        file.add_dirtied(8 << 10, Some(1 << 30), 8 << 10);
        assert_eq!(file.take_dirtied(|| unreachable!()), Some((1 << 30, 8 << 10)));
    }
}
