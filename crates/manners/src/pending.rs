//! Measurements of one thread that wait for the judgment they lead to.

use discnice_units::Nanos;

use crate::binomial::MAX_SAMPLE;
use crate::calibrator::Sample;
use crate::comparator::Judgment;
use crate::config::Config;
use crate::targets::Targets;

/// How much a measurement counts that led to a poor judgment.
const POOR_WEIGHT: f64 = 0.125;

/// Samples since the last judgment, in the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    samples: Vec<Head>,
    /// The samples' progress, one after the other.
    progress: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Head {
    index: u32,
    metrics: usize,
    duration: f64,
    elapsed: Nanos,
    quiet: bool,
}

impl Pending {
    pub(crate) fn push(&mut self, index: u32, sample: &Sample<'_>) {
        self.samples.push(Head {
            index,
            metrics: sample.progress.len(),
            duration: sample.duration,
            elapsed: sample.elapsed,
            quiet: sample.quiet,
        });
        self.progress.extend_from_slice(sample.progress);
    }

    //= ms-manners/4.3-weights
    /// Lets `targets` learn what is pending, if there is now a judgment of it or enough of it.
    pub(crate) fn decide(&mut self, judgment: Judgment, config: &Config, targets: &mut Targets) {
        if judgment == Judgment::Indeterminate && self.samples.len() < MAX_SAMPLE {
            return;
        }
        let mut progress = self.progress.as_slice();
        for head in self.samples.drain(..) {
            let (own, rest) = progress.split_at(head.metrics);
            progress = rest;
            let doubtful = judgment == Judgment::Poor && !head.quiet;
            let sample = Sample {
                duration: head.duration,
                elapsed: head.elapsed,
                progress: own,
                quiet: head.quiet,
                weight: if doubtful { POOR_WEIGHT } else { 1.0 },
            };
            if let Ok(set) = targets.set(head.index, head.metrics) {
                set.learn(config, &sample);
            }
        }
        self.progress.clear();
    }
}
