//! Regulation of one thread: what a testpoint leads to (paper sections 4 and 7.1).

use std::collections::BTreeMap;
use std::sync::Arc;

use discnice_units::{Moment, Nanos};

use crate::model::binomial::Thresholds;
use crate::model::calibrator::Sample;
use crate::model::comparator::{Comparator, Judgment};
use crate::model::config::{Calibration, Config};
use crate::model::pending::Pending;
use crate::model::quiet::Others;
use crate::model::sequential::SlowdownDetector;
use crate::model::suspension::{Suspend, Suspension};
use crate::model::targets::{BadSet, Targets};

/// A counter at or beyond this is no count of progress; squares of it still fit a double.
const OUT_OF_RANGE: f64 = 9.3e18;

/// Testpoints over which the mean interval between them is taken.
const MEAN_OVER: u32 = 100;

//= ms-manners/4.1-units
/// What a job reports.
#[derive(Debug, Clone, Copy)]
pub struct Testpoint<'a> {
    /// Now, on a clock that only goes forward.
    pub at: Moment,
    /// Number of the metric set (a phase of the job).
    pub index: u32,
    /// Cumulative counters of the set, in any unit that the job keeps to.
    pub metrics: &'a [f64],
    /// What others did to the machine since the last testpoint.
    pub others: Others,
}

/// What a testpoint leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on; the judgment is for observers.
    Proceed(Judgment),
    /// Progress is poor: step aside.
    Suspend(Suspend),
    /// On probation, run only part of the time: wait until this moment.
    Hold(Moment),
    /// Go on; this testpoint taught nothing.
    Skipped(Skip),
}

/// Why a testpoint was neither judged nor learned from. The job always goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The first testpoint of this set on this thread: there is nothing to subtract from.
    First,
    /// No counter moved. The time counts towards the next testpoint that sees progress.
    NoProgress,
    /// A counter went down: it was reset, or its log rotated. Counting starts again here.
    Backwards,
    /// A counter is not a number, infinite, or beyond any count.
    OutOfRange,
    /// The set cannot be used.
    Set(BadSet),
    //= ms-manners/7.1-hung
    /// The last testpoint is so long ago that something outside (a person, a dead network) held the
    /// job, not contention.
    Hung,
    //= ms-manners/4.3-critical
    /// The job ran although it should wait; its measurements would spoil the average
    /// (section 4.3, subsampling).
    Unregulated,
}

/// The state of one thread: its sample, its back-off, its counters.
#[derive(Debug, Clone)]
pub struct Regulator {
    config: Config,
    comparator: Comparator,
    detector: SlowdownDetector,
    /// Mean seconds between testpoints that are judged, and how many were.
    interval: f64,
    judged: u32,
    suspension: Suspension,
    counters: BTreeMap<u32, Vec<f64>>,
    progress: Vec<f64>,
    pending: Pending,
    last_index: u32,
    /// Start of the interval that the next testpoint ends, after the first one.
    since: Option<Moment>,
    /// End of the last interval that was learned from.
    learned_at: Moment,
    /// The job should not run before this moment.
    not_before: Moment,
    /// Time run on probation that no hold has made up for.
    unpaid: Nanos,
    lags: bool,
}

impl Regulator {
    /// A thread that starts now under `config`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            comparator: Comparator::new(
                Arc::new(Thresholds::new(config.alpha, config.beta)),
                Arc::new(Thresholds::new(config.probe_alpha, config.beta)),
            ),
            detector: SlowdownDetector::default(),
            interval: 0.0,
            judged: 0,
            suspension: Suspension::new(config),
            config: config.clone(),
            counters: BTreeMap::new(),
            progress: Vec::new(),
            pending: Pending::default(),
            last_index: 0,
            since: None,
            learned_at: Moment::FIRST,
            not_before: Moment::FIRST,
            unpaid: Nanos(0),
            lags: false,
        }
    }

    /// The parameters in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns true if the latest testpoint took longer than its target: a good moment to look what
    /// others do, before there is a judgment.
    #[must_use]
    pub fn lags(&self) -> bool {
        self.lags
    }

    //= ms-manners/4-architecture
    /// Takes one report and says what follows. After a `Suspend` or a `Hold`, call
    /// [`Self::resumed`] when the thread runs again.
    pub fn testpoint(&mut self, targets: &mut Targets, call: &Testpoint<'_>) -> Verdict {
        let duration = call.at.since(self.since.unwrap_or_default());
        if let Err(skip) = self.advance(targets, call, duration) {
            return Verdict::Skipped(skip);
        }
        let Ok(set) = targets.set(call.index, call.metrics.len()) else {
            return Verdict::Skipped(Skip::First);
        };
        let seconds = duration.as_secs_f64();
        let judgment =
            set.target_duration(&self.progress).map_or(Judgment::Indeterminate, |target| {
                self.lags = seconds > target * self.config.slack;
                self.judge(seconds, target, call.others == Others::Busy)
            });
        let elapsed = call.at.since(self.learned_at);
        self.learned_at = call.at;
        let sample = Sample {
            duration: seconds,
            elapsed: elapsed.min(self.config.suspension_cap.plus(self.config.hung)),
            progress: &self.progress,
            quiet: call.others.are_idle(),
            weight: 1.0,
        };
        if set.is_settled() && self.config.calibration == Calibration::Trimmed {
            self.pending.push(call.index, &sample);
        } else {
            set.learn(&self.config, &sample);
        }
        let duty = set.duty_limit(&self.config);
        let unproven = !set.is_settled() && !call.others.are_idle();
        self.unpaid = if unproven { self.unpaid.plus(duration) } else { Nanos(0) };
        self.pending.decide(judgment, &self.config, targets);
        self.verdict(judgment, call, duty)
    }

    /// Judges a testpoint that took `seconds` instead of `target`.
    fn judge(&mut self, seconds: f64, target: f64, likely: bool) -> Judgment {
        if self.config.false_stop_hours == 0.0 {
            return self.comparator.compare(self.lags, likely);
        }
        // Of the first hundred a plain mean.
        self.judged = self.judged.saturating_add(1);
        let part = 1.0 / f64::from(self.judged.min(MEAN_OVER));
        self.interval += (seconds - self.interval) * part;
        let every = self.config.false_stop_hours * 3600.0 / self.interval.max(1e-9);
        let slack = self.config.slack;
        let alarm = self.detector.observe(seconds / target, slack, every.max(2.0));
        let judgment = match self.detector.is_ready() {
            true => self.comparator.confirm(self.lags, likely),
            false => self.comparator.compare(self.lags, likely),
        };
        match judgment {
            Judgment::Poor => {
                self.detector.reset();
                Judgment::Poor
            }
            Judgment::Good if !alarm => {
                self.detector.undisturbed();
                Judgment::Good
            }
            _ if alarm => {
                self.comparator.decided_poor();
                Judgment::Poor
            }
            judgment => judgment,
        }
    }

    fn verdict(&mut self, judgment: Judgment, call: &Testpoint<'_>, duty: Option<f64>) -> Verdict {
        let at = call.at;
        let confirmed = call.others == Others::Busy;
        // The testpoints that passed before the machine could be observed are paid for too.
        let hold = duty.map(|frac| {
            let ran = std::mem::take(&mut self.unpaid);
            (ran.0 as f64 * (1.0 / frac - 1.0)) as u64
        });
        let is_elsewhere = self.is_slowed_elsewhere(judgment, call.others);
        // For the suspensions, that is as good as good progress: no contention lasts.
        let minded = if is_elsewhere { Judgment::Good } else { judgment };
        if let Some(mut suspend) = self.suspension.judged(minded, at, confirmed) {
            // Probation bounds early probes as well.
            let held_until = at.plus(Nanos(hold.unwrap_or(0)));
            suspend.until = suspend.until.max(held_until);
            suspend.early_from = suspend.early_from.map(|early| early.max(held_until));
            self.not_before = suspend.until;
            return Verdict::Suspend(suspend);
        }
        match hold {
            Some(nanos) if nanos > 0 => {
                self.not_before = at.plus(Nanos(nanos));
                Verdict::Hold(self.not_before)
            }
            _ => Verdict::Proceed(judgment),
        }
    }

    //= ms-manners/3-external-resources
    /// Returns true if a suspension would help no other program: progress is poor, and nothing on this machine is the cause. The
    /// paper's plain back-off knows of no signals.
    fn is_slowed_elsewhere(&self, judgment: Judgment, others: Others) -> bool {
        judgment == Judgment::Poor
            && others == Others::Elsewhere
            && self.config.early_probe.is_some()
    }

    //= ms-manners/4.1-rate
    /// Leaves in `self.progress` what was achieved in the interval, and starts the next one.
    fn advance(
        &mut self,
        targets: &mut Targets,
        call: &Testpoint<'_>,
        duration: Nanos,
    ) -> Result<(), Skip> {
        targets.set(call.index, call.metrics.len()).map_err(Skip::Set)?;
        if call.metrics.iter().any(|value| value.is_nan() || value.abs() >= OUT_OF_RANGE) {
            return Err(Skip::OutOfRange);
        }
        let Some(counters) = self.counters.get_mut(&call.index) else {
            self.counters.insert(call.index, call.metrics.to_vec());
            return Err(self.restart(call, Skip::First));
        };
        self.progress.clear();
        self.progress.extend(call.metrics.iter().zip(&*counters).map(|(now, was)| now - was));
        let backwards = self.progress.iter().any(|&p| p < 0.0);
        let none = self.progress.iter().all(|&p| p == 0.0);
        if none && call.index == self.last_index && duration <= self.config.hung {
            return Err(Skip::NoProgress);
        }
        counters.copy_from_slice(call.metrics);
        if backwards {
            return Err(self.restart(call, Skip::Backwards));
        }
        if none {
            return Err(self.restart(call, Skip::NoProgress));
        }
        if call.at < self.not_before {
            return Err(self.restart(call, Skip::Unregulated));
        }
        if duration > self.config.hung {
            return Err(self.restart(call, Skip::Hung));
        }
        if duration.0 == 0 {
            return Err(self.restart(call, Skip::NoProgress));
        }
        self.restart(call, Skip::First);
        Ok(())
    }

    /// Counts the progress of set `index` from these values on, in the interval that the next testpoint ends: the caller
    /// knows what the counters were when that began, whichever set was reported then. Values that are no counts change
    /// nothing.
    pub fn count_from(&mut self, index: u32, metrics: &[f64]) {
        if metrics.iter().all(|value| value.abs() < OUT_OF_RANGE) {
            self.counters.insert(index, metrics.to_vec());
        }
    }

    fn restart(&mut self, call: &Testpoint<'_>, skip: Skip) -> Skip {
        if self.since.is_none() {
            // What was before the job is none of its time.
            self.learned_at = call.at;
        }
        self.since = Some(call.at);
        self.last_index = call.index;
        skip
    }

    /// The thread runs again after a suspension, a hold, or a wait for its turn. `early` tells
    /// that it resumed before its time because the machine went quiet.
    pub fn resumed(&mut self, at: Moment, early: bool) {
        if early {
            self.suspension.resumed_early();
        }
        self.since = Some(at);
        self.not_before = self.not_before.min(at);
    }
}

#[cfg(test)]
mod tests;
