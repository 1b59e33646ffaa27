//! What is known about how a descriptor is written: what is dirty, and what waits to be written back.

use discnice_estimator::blocks::PAGE;

use super::{
    APPENDS, DIRECT, EMPTIED, FOREIGN, File, MADE, MODE_KNOWN, OWED_MASK, OWED_SHIFT, PREDICTED, R,
    REWRITES, SYNCHRONOUS,
};
use crate::host::WriteMode;

/// Dirtied bytes are counted in whole pages, at both ends.
const ROUNDED: u64 = 2 * PAGE;
/// Pages that may be rewritten before the kernel is asked which are dirty.
const UNASKED: u8 = 16;

impl File {
    /// Returns true if a write is known to find all its pages dirty, unless so much was rewritten
    /// that the kernel is to be asked: it may have written them meanwhile.
    #[inline(always)]
    #[must_use]
    pub fn knows_dirty(&self, count: usize, at: Option<u64>) -> bool {
        let covers = |at: u64| {
            let end = at.saturating_add(count as u64);
            at >= self.dirty_low.load(R) && end <= self.dirty_high.load(R)
        };
        self.place(at).is_some_and(covers) && self.rewritten_with(count) <= UNASKED
    }

    /// Returns how many pages are rewritten unasked after a write of so many bytes.
    #[inline(always)]
    fn rewritten_with(&self, count: usize) -> u8 {
        let pages = (count / PAGE as usize).min(UNASKED as usize) as u8 + 1;
        self.unasked.load(R).saturating_add(pages)
    }

    /// Counts a write that finds its pages dirty, as [`Self::knows_dirty`] said.
    #[inline(always)]
    pub fn note_rewritten(&self, count: usize) {
        self.unasked.store(self.rewritten_with(count), R);
    }

    /// The kernel was asked.
    pub(crate) fn note_asked(&self) {
        self.unasked.store(0, R);
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

    /// Writes cost nothing as far as known, because they hit pages that are dirty already.
    #[inline(always)]
    #[must_use]
    pub fn rewrites(&self) -> bool {
        self.has(REWRITES)
    }

    /// Returns true if [`Self::rewrites`] does and written ranges are not tracked for a prediction.
    #[inline(always)]
    #[must_use]
    pub fn rewrites_unpredicted(&self) -> bool {
        self.flags.load(R) & (REWRITES | PREDICTED) == REWRITES
    }

    pub(crate) fn set_rewrites(&self, on: bool) {
        self.set(REWRITES, on);
    }

    /// Returns true if the process that has the file open created it, so that it must be examined
    /// when closed.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.has(MADE)
    }

    pub(crate) fn set_made(&self) {
        self.set(MADE, true);
    }

    /// Something is left to be done when it is closed.
    #[inline(always)]
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.dirtied() > 0 || self.has(REWRITES | MADE | FOREIGN | OWED_MASK)
    }

    /// We were told of an error that the program should have been.
    pub fn owe_error(&self, error: u32) {
        self.flags.fetch_or((error << OWED_SHIFT) & OWED_MASK, R);
    }

    /// The number of the error that the program's fsync(2) or close(2) must return, once; `None` if there is none.
    #[must_use]
    pub fn take_owed_error(&self) -> Option<i32> {
        if !self.has(OWED_MASK) {
            return None;
        }
        let before = self.flags.fetch_and(!OWED_MASK, R);
        i32::try_from((before & OWED_MASK) >> OWED_SHIFT).ok()
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
    use discnice_estimator::regions::FileKey;

    use super::*;

    #[test]
    fn an_owed_error_is_told_once() {
        let file = File::new();
        file.set_identity(23, FileKey::new(1, 2));
        assert_eq!(file.take_owed_error(), None);
        // EDQUOT, the largest number that disks give.
        file.owe_error(122);
        assert!(file.is_unfinished(), "close(2) must tell");
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
    fn scattered_writes_are_all_written_back() {
        let file = File::new();
        file.add_dirtied(100 << 10, None, 64);
        assert_eq!(file.take_dirtied(|| Some(64)), Some((0, 0)), "the header came last");
        file.add_dirtied(8 << 10, None, 4096);
        assert_eq!(file.take_dirtied(|| Some(1 << 20)), Some((0, 0)), "it left a gap");
        file.add_dirtied(8 << 10, Some(1 << 30), 8 << 10);
        assert_eq!(file.take_dirtied(|| unreachable!()), Some((1 << 30, 8 << 10)));
    }
}
