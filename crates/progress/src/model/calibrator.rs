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
        self.samples
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
        let harmless = probation.quiet.weight() + UNSEEN >= self.samples as f64;
        (!harmless && config.probation.0 > 0).then_some(config.probation_duty_frac)
    }

    //= ms-manners/6.2-rule
    /// Learns from one testpoint; `sample.duration` is above zero.
    pub fn learn(&mut self, config: &Config, sample: &Sample<'_>) {
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
            && (targets.is_empty() || targets.len() == metrics)
            && targets.iter().all(|s| s.is_finite() && *s >= 0.0)
            && self.probation.as_ref().is_none_or(|p| p.is_sound(metrics))
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
mod tests {
    use super::*;

    fn teach(calibrator: &mut Calibrator, config: &Config, count: u32, seconds: f64, quiet: bool) {
        for _ in 0..count {
            let sample = Sample {
                duration: seconds,
                elapsed: Nanos((seconds * 1e9) as u64),
                progress: &[1.0],
                quiet,
                weight: 1.0,
            };
            calibrator.learn(config, &sample);
        }
    }

    //= ms-manners/4.3-bootstrap
    #[test]
    fn bootstrap_has_no_target_and_bounds_the_job() {
        let config = Config::default();
        let mut calibrator = Calibrator::new(1);
        teach(&mut calibrator, &config, config.bootstrap - 1, 0.1, false);
        assert_eq!(calibrator.target_duration(&[1.0]), None);
        assert_eq!(calibrator.duty_limit(&config), Some(0.2));
        teach(&mut calibrator, &config, 1, 0.1, false);
        assert!((calibrator.target_duration(&[2.0]).unwrap() - 0.2).abs() < 1e-9);
        assert!(!calibrator.is_settled());
    }

    //= ms-manners/3-long-running
    #[test]
    fn a_quiet_machine_needs_no_probation() {
        let config = Config::default();
        let mut calibrator = Calibrator::new(1);
        teach(&mut calibrator, &config, 1, 0.1, true);
        assert_eq!(calibrator.duty_limit(&config), None);
        teach(&mut calibrator, &config, config.bootstrap, 0.1, true);
        assert!(calibrator.is_settled());
    }

    //= ms-manners/11-fewer-measurements
    #[test]
    fn quiet_testpoints_correct_a_start_under_load() {
        let config = Config::default();
        let mut calibrator = Calibrator::new(1);
        teach(&mut calibrator, &config, 500, 0.3, false);
        assert!((calibrator.target_duration(&[1.0]).unwrap() - 0.3).abs() < 1e-6);
        teach(&mut calibrator, &config, config.bootstrap, 0.1, true);
        assert!((calibrator.target_duration(&[1.0]).unwrap() - 0.1).abs() < 1e-6);
        assert!(calibrator.is_settled());
    }

    //= ms-manners/4.3-average
    //= ms-manners/6.2-rule
    #[test]
    fn equation_4_averages_rates() {
        let config = Config { probation: Nanos(0), ..Config::paper() };
        let mut calibrator = Calibrator::new(1);
        teach(&mut calibrator, &config, 20_000, 1.0, false);
        teach(&mut calibrator, &config, 10_000, 0.5, false);
        // 1 + (1 - xi^n) with xi^n = 1/e.
        let rate = 1.0 / calibrator.target_duration(&[1.0]).unwrap();
        assert!((rate - (2.0 - (-1.0f64).exp())).abs() < 1e-3, "{rate}");
    }

    //= ms-manners/4.3-probation
    #[test]
    fn probation_ends_when_served() {
        let config = Config::default();
        let mut calibrator = Calibrator::new(1);
        teach(&mut calibrator, &config, 3601, 1.0, false);
        assert!(calibrator.is_settled());
        assert_eq!(calibrator.duty_limit(&config), None);
    }
}
