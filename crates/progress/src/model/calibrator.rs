//! The target calibrator of one metric set (paper sections 4.3, 6.2 and 6.3).
//!
//! A set passes three stages. *Bootstrap*: the first testpoints only teach. *Probation*: there is a
//! target, but perhaps from under load, so the job is regulated and its share of time is bounded.
//! *Settled*: the exponential average tracks slow changes. Testpoints that ran while the machine
//! was known to be quiet need no probation: enough of them settle a set at once.

use discnice_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::model::config::{Calibration, Config};
use crate::model::ridge::{Statistics, duration_of};
use crate::model::usual::{self, Kept};
use crate::model::windows::Windows;

/// One measurement: what was achieved, in how long, and whether the machine was quiet.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Seconds of execution since the last testpoint.
    pub duration: f64,
    /// Time since the last sample, suspensions included; what probation is counted in.
    pub elapsed: Nanos,
    /// Progress since the last testpoint, a number a metric.
    pub progress: &'a [f64],
    /// Set if the machine is known to have been idle otherwise meanwhile.
    pub quiet: bool,
    /// How much this counts, above 0 and at most 1; the paper's 1 for all.
    pub weight: f64,
}

/// Testpoints that may pass before the first look at the machine.
const UNSEEN: f64 = 5.0;

/// What is known only until the set is settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Probation {
    windows: Windows,
    /// Testpoints known to have run on a quiet machine.
    quiet: Statistics,
    /// Nanoseconds already spent on probation.
    served: u64,
}

//= ms-manners/4.3-average
/// Learns how long the progress of one metric set takes when uncontended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrator {
    /// `None` once settled.
    probation: Option<Probation>,
    /// All testpoints, exponentially averaged.
    average: Statistics,
    /// Equation 4's r: units per second of a single metric.
    rate: f64,
    samples: u64,
    /// The targets in force, solved from the statistics; empty in bootstrap.
    seconds_per_unit: Vec<f64>,
    /// How long a testpoint takes usually, in seconds; zero until the first target.
    #[serde(default)]
    usual: f64,
    /// Testpoints that will be learned from when there are enough for a first target.
    #[serde(default)]
    first: Vec<Kept>,
}

impl Calibrator {
    /// An untaught calibrator of `metrics` metrics.
    #[must_use]
    pub fn new(metrics: usize) -> Self {
        let quiet = Statistics::new(metrics);
        Self {
            probation: Some(Probation { windows: Windows::new(metrics), quiet, served: 0 }),
            average: Statistics::new(metrics),
            rate: 0.0,
            samples: 0,
            seconds_per_unit: Vec::new(),
            usual: 0.0,
            first: Vec::new(),
        }
    }

    /// How many metrics the set has.
    #[must_use]
    pub fn metrics(&self) -> usize {
        self.average.metrics()
    }

    /// Testpoints learned from.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples + self.first.len() as u64
    }

    /// Returns true if probation is over.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.probation.is_none()
    }

    /// The target duration of `progress` in seconds (equation 8); `None` while bootstrapping.
    #[must_use]
    pub fn target_duration(&self, progress: &[f64]) -> Option<f64> {
        let seconds = duration_of(progress, &self.seconds_per_unit);
        (seconds.is_finite() && seconds > 0.0).then_some(seconds)
    }

    /// Target seconds per unit of each metric; empty while bootstrapping.
    #[must_use]
    pub fn seconds_per_unit(&self) -> &[f64] {
        &self.seconds_per_unit
    }

    //= ms-manners/4.3-probation
    /// The largest share of time that the job may run; `None` where only judgments hold it.
    #[must_use]
    pub fn duty_limit(&self, config: &Config) -> Option<f64> {
        let probation = self.probation.as_ref()?;
        // As long as every testpoint ran on a quiet machine, no harm is done. The first few come
        // before the machine could be observed.
        let quiet = self.first.iter().filter(|kept| kept.quiet).count() as f64;
        let harmless = probation.quiet.weight() + quiet + UNSEEN >= self.samples() as f64;
        (!harmless && config.probation.0 > 0).then_some(config.probation_duty_frac)
    }

    //= ms-manners/6.2-rule
    /// Learns from one testpoint; `sample.duration` is above zero.
    pub fn learn(&mut self, config: &Config, sample: &Sample<'_>) {
        if config.calibration == Calibration::Paper {
            return self.average(config, sample);
        }
        if !self.seconds_per_unit.is_empty() {
            return self.learn_part(config, sample);
        }
        self.first.push(Kept::of(sample));
        if self.first.len() < config.bootstrap as usize {
            return;
        }
        let first = std::mem::take(&mut self.first);
        if let Some((usual, seconds)) = usual::first_target(&first, config.ridge) {
            (self.usual, self.seconds_per_unit) = (usual, seconds);
        }
        first.iter().for_each(|kept| self.learn_part(config, &kept.sample()));
    }

    //= ms-manners/4.3-average
    /// Learns from a testpoint as if it had ended when it had achieved what takes as long as testpoints usually do.
    fn learn_part(&mut self, config: &Config, sample: &Sample<'_>) {
        if self.usual == 0.0 {
            self.usual = sample.duration;
        }
        let part = usual::part(self.usual, self.target_duration(sample.progress));
        let (duration, progress) = (part * sample.duration, usual::scaled(sample.progress, part));
        self.average(config, &Sample { duration, progress: &progress, ..*sample });
        let n = config.average_over.min(self.samples as f64);
        self.usual += (sample.duration - self.usual) * sample.weight / n;
    }

    fn average(&mut self, config: &Config, sample: &Sample<'_>) {
        self.samples += 1;
        // The paper's xi (equation 5); before there are n samples, all weigh the same.
        let n = config.average_over.min(self.samples as f64);
        let keep = (n - sample.weight) / n;
        self.average.add(keep, sample.weight, sample.duration, sample.progress);
        self.rate = keep * self.rate + (1.0 - keep) * sample.progress[0] / sample.duration;
        if let Some(probation) = &mut self.probation {
            probation.learn(sample);
        }
        if self.samples >= u64::from(config.bootstrap) {
            self.settle(config);
            self.retarget(config);
        }
    }

    //= ms-manners/3-long-running
    /// Ends probation when it is served, or earlier on evidence from a quiet machine.
    fn settle(&mut self, config: &Config) {
        let Some(probation) = &self.probation else { return };
        let trimmed = config.calibration == Calibration::Trimmed;
        let evidence = trimmed && probation.quiet.weight() >= f64::from(config.bootstrap);
        if !evidence && probation.served < config.probation.0 {
            return;
        }
        if trimmed && let Some(better) = probation.uncontended(config) {
            self.average = better;
            // The next samples weigh as much as each of those that made the new average.
            self.samples = self.samples.min(self.average.weight() as u64).max(1);
        }
        self.probation = None;
    }

    fn retarget(&mut self, config: &Config) {
        if config.calibration == Calibration::Paper && self.metrics() == 1 {
            self.seconds_per_unit = vec![1.0 / self.rate];
            return;
        }
        let trimmed = match &self.probation {
            Some(probation) if config.calibration == Calibration::Trimmed => {
                if !probation.windows.just_filled() && !self.seconds_per_unit.is_empty() {
                    return;
                }
                probation.uncontended(config)
            }
            _ => None,
        };
        let statistics = trimmed.as_ref().unwrap_or(&self.average);
        if let Some(seconds) = statistics.seconds_per_unit(config.ridge) {
            self.seconds_per_unit = seconds;
        }
    }

    /// Returns true if these numbers can have come from samples; a file that fails this is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let metrics = self.metrics();
        let targets = &self.seconds_per_unit;
        self.average.is_sound()
            && self.rate.is_finite()
            && self.usual.is_finite()
            && self.first.iter().all(|kept| kept.is_sound(metrics))
            && (targets.is_empty() || targets.len() == metrics)
            && targets.iter().all(|s| s.is_finite() && *s >= 0.0)
            && self.probation.as_ref().is_none_or(|p| p.is_sound(metrics))
    }
}

impl Kept {
    fn of(sample: &Sample<'_>) -> Self {
        let Sample { duration, elapsed, progress, quiet, weight } = *sample;
        Self { duration, elapsed: elapsed.0, progress: progress.to_vec(), quiet, weight }
    }

    fn sample(&self) -> Sample<'_> {
        let Self { duration, elapsed, quiet, weight, .. } = *self;
        Sample { duration, elapsed: Nanos(elapsed), progress: &self.progress, quiet, weight }
    }
}

impl Probation {
    fn learn(&mut self, sample: &Sample<'_>) {
        self.windows.add(sample.duration, sample.progress);
        if sample.quiet {
            self.quiet.add(1.0, 1.0, sample.duration, sample.progress);
        }
        self.served = self.served.saturating_add(sample.elapsed.0);
    }

    /// The measurements to believe: those of a quiet machine if there are enough, else those of
    /// the fastest windows.
    fn uncontended(&self, config: &Config) -> Option<Statistics> {
        if self.quiet.weight() >= f64::from(config.bootstrap) {
            return Some(self.quiet.clone());
        }
        self.windows.uncontended(config.ridge)
    }

    fn is_sound(&self, metrics: usize) -> bool {
        self.windows.is_sound(metrics) && self.quiet.is_sound() && self.quiet.metrics() == metrics
    }
}

#[cfg(test)]
mod tests;
