//! Measurements of one thread that wait for the judgment they lead to.

use discnice_units::Nanos;

use crate::model::binomial::MAX_SAMPLE;
use crate::model::calibrator::Sample;
use crate::model::comparator::Judgment;
use crate::model::config::Config;
use crate::model::targets::Targets;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The target in seconds of a job of 0.1 s a unit, after a hundred testpoints of twice the time that led to
    /// this judgment.
    fn target_after(judgment: Judgment, quiet: bool) -> f64 {
        let config = Config { average_over: 1000.0, ..Config::default() };
        let mut targets = Targets::default();
        let sample = |duration: f64, quiet: bool| Sample {
            duration,
            elapsed: Nanos((duration * 1e9) as u64),
            progress: &[1.0],
            quiet,
            weight: 1.0,
        };
        for _ in 0..300 {
            targets.set(0, 1).unwrap().learn(&config, &sample(0.1, true));
        }
        let mut pending = Pending::default();
        for _ in 0..100 {
            pending.push(0, &sample(0.2, quiet));
        }
        pending.decide(Judgment::Indeterminate, &config, &mut targets);
        let undecided = targets.set(0, 1).unwrap().target_duration(&[1.0]).unwrap();
        assert!((undecided - 0.1).abs() < 1e-3, "{undecided} before the judgment");
        pending.decide(judgment, &config, &mut targets);
        targets.set(0, 1).unwrap().target_duration(&[1.0]).unwrap()
    }

    //= ms-manners/4.3-weights
    #[test]
    fn what_led_to_a_poor_judgment_counts_an_eighth() {
        let (good, poor) =
            (target_after(Judgment::Good, false), target_after(Judgment::Poor, false));
        assert!(good > 0.12, "{good}");
        assert!((0.102..0.11).contains(&poor), "{poor}");
        // A disk that became slower for good shows on a quiet machine, and is learned at once.
        assert!((target_after(Judgment::Poor, true) - good).abs() < 1e-9);
    }
}
