//! What is known about how a descriptor is read: in order or not, and what of it was paid for.

use super::{
    FOREIGN, File, HALVED, PREDICTED, PROGRAM_RANDOM, PROGRAM_SEQUENTIAL, R, RUN_AHEAD, SHAPED,
    STREAM,
};

impl File {
    /// What is read of it is to leave the page cache.
    pub(crate) fn set_foreign_to_cache(&self) {
        self.set(FOREIGN, true);
    }

    /// Returns true if what is read of it is to leave the page cache.
    #[inline(always)]
    #[must_use]
    pub fn is_foreign_to_cache(&self) -> bool {
        self.has(FOREIGN)
    }

    /// Portions from the beginning that are dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(R).into()
    }

    /// So many portions from the beginning are dropped; returns how many were before. Beyond the most that it counts
    /// nothing is dropped before it is closed.
    pub(crate) fn raise_dropped(&self, portions: u64) -> u64 {
        let most = u16::try_from(portions).unwrap_or(u16::MAX);
        let before = self.dropped.fetch_max(most, R);
        if u64::from(most) < portions { portions } else { before.into() }
    }

    /// Nothing but timing is needed as long as reads hit the cache: we do not read ahead for it.
    #[inline(always)]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.has(STREAM)
    }

    /// A read that is known to find all its pages in the cache.
    #[inline(always)]
    #[must_use]
    pub fn knows_cached(&self, count: usize, at: Option<u64>) -> bool {
        self.place(at).is_some_and(|at| self.detector.knows(at, count as u64))
    }

    /// Returns true if the next read passes without a probe. Where only probes tell what is cached,
    /// they are expensive: if the last reads found all they asked for, the next one passes without.
    /// Its cost, if it has one, is the bytes that it asks for.
    #[inline(always)]
    #[must_use]
    pub fn passes_unprobed(&self) -> bool {
        let wanted = PREDICTED | SHAPED;
        self.flags.load(R) & (wanted | STREAM) == wanted && self.detector.is_probed()
    }

    pub(crate) fn is_shaped(&self) -> bool {
        self.has(SHAPED)
    }

    pub(crate) fn set_shaped(&self, on: bool) {
        self.set(SHAPED, on);
    }

    /// The kernel may read ahead on its own: it has, or the file may have been opened anew.
    pub fn expect_unshaped(&self) {
        if self.is_shaped() {
            self.set_shaped(false);
        }
    }

    pub(crate) fn is_halved(&self) -> bool {
        self.has(HALVED)
    }

    pub(crate) fn set_halved(&self, on: bool) {
        self.set(HALVED, on);
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

    pub(crate) fn has_run_ahead(&self) -> bool {
        self.has(RUN_AHEAD)
    }

    pub(crate) fn set_run_ahead(&self, on: bool) {
        self.set(RUN_AHEAD, on);
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
    pub(crate) fn note_slice(&self, cost: u64) -> u16 {
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

    /// Returns true if a read that ends at `end` is one of the steps that lead to where the last
    /// one ended.
    pub(crate) fn steps_to(&self, end: u64) -> bool {
        let rest = self.next().checked_sub(end);
        rest.and_then(|rest| rest.checked_rem(self.step.load(R).into())) == Some(0)
    }
}
