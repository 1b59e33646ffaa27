//! What the thread writes, and what of it never reaches a disk.

use core::cell::Cell;

use super::Due;

/// Bytes that may be written between looks, as rewriting the same pages costs the disk nothing.
const WRITTEN: u32 = 64 << 10;
/// Bytes that may be written between looks to pages that are known to be dirty already.
const REWRITTEN: u32 = 512 << 10;

/// What the thread has written since the last look.
#[derive(Debug, Default)]
pub struct Writes {
    written: Cell<u32>,
    /// Bytes dirtied by the thread and not yet attributed to a file.
    dirtied: Cell<u64>,
}

impl Writes {
    /// Counts `bytes` that were written into the cache, a cost that no clock shows; returns why the
    /// account must be read now.
    #[inline(always)]
    pub fn count(&self, bytes: isize) -> Option<Due> {
        if self.add(bytes.max(0) as usize) >= WRITTEN { Some(Due::Written) } else { None }
    }

    /// Counts `bytes` that were written to pages known to be dirty already; returns why the account
    /// must be read now.
    #[inline(always)]
    pub fn count_rewritten(&self, bytes: usize) -> Option<Due> {
        if self.add(bytes) >= REWRITTEN { Some(Due::Written) } else { None }
    }

    #[inline(always)]
    fn add(&self, bytes: usize) -> u32 {
        let total = self.written.get().saturating_add(bytes.min(REWRITTEN as usize) as u32);
        self.written.set(total);
        total
    }

    /// Begins anew, after a look.
    pub(super) fn restart(&self) {
        self.written.set(0);
    }

    /// Notes that a look found so many bytes dirtied: the next write is looked at, as no rewriting.
    pub(crate) fn note_dirtied(&self, bytes: u64) {
        let dirtied = self.dirtied.get().saturating_add(bytes);
        if dirtied > 0 {
            self.dirtied.set(dirtied);
            self.written.set(u32::MAX);
        }
    }

    /// Returns and clears the dirtied bytes, to attribute them to a file.
    pub(crate) fn take_dirtied(&self) -> u64 {
        let dirtied = self.dirtied.take();
        if dirtied > 0 {
            self.written.set(0);
        }
        dirtied
    }
}

/// What is known of the thread's deletions: a thread that deletes its own output writes nothing to
/// a disk, and asking the kernel how much it dropped is expensive.
#[derive(Debug, Default)]
pub struct Deletions {
    /// Bytes of the thread's writes that the kernel has dropped, when last asked.
    cancelled: Cell<u64>,
    /// Set if the thread unlinked or truncated files since its cancelled writes were last read.
    removed: Cell<bool>,
    /// One more than the bytes the thread may still write unasked because it deletes its output;
    /// zero if it does not.
    ahead: Cell<u32>,
}

impl Deletions {
    /// Notes that the thread unlinks or truncates a file; its dirty pages may then never be
    /// written.
    #[inline(always)]
    pub fn note_removal(&self) {
        self.removed.set(true);
    }

    /// Returns true if the thread unlinked or truncated a file since the last call of this
    /// function.
    pub(crate) fn take_removal(&self) -> bool {
        self.removed.replace(false)
    }

    /// Enters how many bytes of the thread's writes the kernel has dropped so far; returns how many
    /// are new. A forked child's count begins anew, which shows as a smaller one.
    pub(crate) fn enter_cancelled(&self, cancelled: u64) -> u64 {
        let before = self.cancelled.replace(cancelled);
        cancelled.checked_sub(before).unwrap_or(cancelled)
    }

    /// Allows the thread to write so many bytes unasked.
    pub(crate) fn allow(&self, bytes: u64) {
        self.ahead.set(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Returns true if a write of `bytes` may pass unasked because the thread deleted what it wrote
    /// so far.
    #[inline(always)]
    #[must_use]
    pub fn cover(&self, bytes: usize) -> bool {
        bytes < self.ahead.get() as usize
    }

    /// Deducts a write that passes unasked.
    #[inline(always)]
    pub fn deduct(&self, bytes: usize) {
        self.ahead.set(self.ahead.get().wrapping_sub(bytes as u32));
    }

    /// Returns true if the thread had deleted its own output when that was last examined.
    pub(crate) fn are_known(&self) -> bool {
        self.ahead.get() > 0
    }
}
