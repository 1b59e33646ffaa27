//! The statistical rate comparator (paper sections 4.2 and 6.1).
//!
//! Each testpoint gives one bit: did this progress take longer than its target. The comparator
//! gathers bits until the sign test decides. A bit is compared against its own target, so one
//! sample may span phases with different metrics.

use std::sync::Arc;

use crate::model::binomial::{MAX_SAMPLE, Thresholds};

/// What the comparator says of the progress rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    /// At or above target: the job may go on, its suspension time is reset.
    Good,
    /// Below target: the job steps aside.
    Poor,
    //= ms-manners/4.2-indeterminate
    /// Too few samples to say; the job goes on and its suspension time stays.
    Indeterminate,
}

//= ms-manners/4.4-spanning
/// Gathers samples of one thread and judges them.
#[derive(Debug, Clone)]
pub struct Comparator {
    thresholds: Arc<Thresholds>,
    /// In force between a poor judgment and the next good one.
    probe_thresholds: Arc<Thresholds>,
    probing: bool,
    /// Set if there were other signs of contention at the last sample.
    likely: bool,
    samples: usize,
    below: usize,
}

impl Comparator {
    /// An empty sample, to be judged by `thresholds`, and after a poor judgment by
    /// `probe_thresholds` until a good one; the paper's comparator has the same for both.
    #[must_use]
    pub fn new(thresholds: Arc<Thresholds>, probe_thresholds: Arc<Thresholds>) -> Self {
        Self { thresholds, probe_thresholds, probing: false, likely: false, samples: 0, below: 0 }
    }

    //= ms-manners/4.2-collect
    /// Adds a sample that lay below its target rate (`below`) or not, and judges all since the
    /// last decision. A decision starts a new sample. `likely` tells that there are other signs
    /// of contention, so that `probe_thresholds` apply.
    pub fn compare(&mut self, below: bool, likely: bool) -> Judgment {
        // Good bits of before these signs say nothing about contention that begins with them; a
        // dozen of them would hide it for a dozen testpoints.
        if likely && !self.likely && 2 * self.below <= self.samples {
            self.reset();
        }
        self.likely = likely;
        self.samples += 1;
        self.below += usize::from(below);
        let judgment = self.judge(self.probing || likely);
        match judgment {
            Judgment::Good => self.probing = false,
            Judgment::Poor => self.probing = true,
            Judgment::Indeterminate => {}
        }
        // A sample of this size without a decision lies on the target; old bits would only make
        // the test slow to notice what happens next.
        if judgment != Judgment::Indeterminate || self.samples == MAX_SAMPLE {
            self.reset();
        }
        judgment
    }

    //= gray-box/5-sampler
    /// Takes over what another test has decided: progress is poor.
    pub fn decided_poor(&mut self) {
        self.probing = true;
        self.reset();
    }

    /// Adds a sample as [`Self::compare`] does, but without other signs of contention, or a poor
    /// judgment before, the judgment is never poor: another test decides that.
    pub fn confirm(&mut self, below: bool, likely: bool) -> Judgment {
        let alone = !likely && !self.probing;
        match self.compare(below, likely) {
            Judgment::Poor if alone => {
                self.probing = false;
                Judgment::Indeterminate
            }
            judgment => judgment,
        }
    }

    //= gray-box/5-sampler
    fn judge(&self, likely: bool) -> Judgment {
        let thresholds = if likely { &self.probe_thresholds } else { &self.thresholds };
        if thresholds.is_poor(self.samples, self.below) {
            Judgment::Poor
        } else if thresholds.is_good(self.samples, self.below) {
            Judgment::Good
        } else {
            Judgment::Indeterminate
        }
    }

    /// Forgets the samples gathered so far.
    pub fn reset(&mut self) {
        self.samples = 0;
        self.below = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparator() -> Comparator {
        let thresholds = |alpha| Arc::new(Thresholds::new(alpha, 0.2));
        Comparator::new(thresholds(0.05), thresholds(0.125))
    }

    //= gray-box/5-sampler
    #[test]
    fn five_in_a_row_below_are_poor() {
        let mut comparator = comparator();
        let judged: Vec<_> = (0..5).map(|_| comparator.compare(true, false)).collect();
        assert_eq!(judged[..4], [Judgment::Indeterminate; 4]);
        assert_eq!(judged[4], Judgment::Poor);
    }

    #[test]
    fn a_probe_is_judged_sooner_until_progress_is_good() {
        let mut comparator = comparator();
        let mut until_poor =
            || (1..).find(|_| comparator.compare(true, false) == Judgment::Poor).unwrap_or(0);
        assert_eq!([until_poor(), until_poor(), until_poor()], [5, 3, 3]);
        assert_eq!([false; 3].map(|below| comparator.compare(below, false))[2], Judgment::Good);
        let judged: Vec<_> = (0..5).map(|_| comparator.compare(true, false)).collect();
        assert_eq!(judged[3..], [Judgment::Indeterminate, Judgment::Poor]);
    }

    //= ms-manners/4.2-collect
    #[test]
    fn balanced_samples_stay_indeterminate() {
        let mut comparator = comparator();
        for i in 0..1000 {
            assert_eq!(
                comparator.compare(i % 2 == 0, false),
                Judgment::Indeterminate,
                "sample {i}"
            );
        }
    }

    #[test]
    fn signs_of_contention_make_old_good_progress_meaningless() {
        let mut comparator = comparator();
        let undecided = [true, true, false, true, false, false, true, false, false, true];
        for below in undecided {
            assert_eq!(comparator.compare(below, false), Judgment::Indeterminate);
        }
        assert_eq!([true; 3].map(|below| comparator.compare(below, true))[2], Judgment::Poor);
        let mut comparator = super::tests::comparator();
        assert_eq!([true; 2].map(|b| comparator.compare(b, false))[1], Judgment::Indeterminate);
        assert_eq!(comparator.compare(true, true), Judgment::Poor, "bad progress still counts");
    }

    #[test]
    fn a_decision_starts_anew() {
        let mut comparator = comparator();
        assert_eq!([false; 3].map(|below| comparator.compare(below, false))[2], Judgment::Good);
        assert_eq!(
            [false; 2].map(|below| comparator.compare(below, false))[1],
            Judgment::Indeterminate
        );
    }
}
