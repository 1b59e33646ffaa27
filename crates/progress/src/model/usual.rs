//! How much of a testpoint to learn from, so that none counts as more than one.
//!
//! Least squares weigh a testpoint by the square of its progress (equations 9 and 10). One that achieved a thousand times as
//! much as others, because what it read was cached, would count as a million of them, and these would lag behind a target that
//! it alone could meet. The average of the paper gives each testpoint the same weight (section 4.3). So a testpoint
//! that achieved what should take longer than testpoints usually do is shortened to that: its time and its progress by the same factor.

use serde::{Deserialize, Serialize};

use crate::model::ridge::{Statistics, duration_of};

/// A measurement that is kept until there is a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Seconds.
    pub(crate) duration: f64,
    /// Nanoseconds.
    pub(crate) elapsed: u64,
    pub(crate) progress: Vec<f64>,
    pub(crate) quiet: bool,
    pub(crate) weight: f64,
}

impl Kept {
    /// Returns true if these numbers can be a sample's of `metrics` metrics.
    pub(crate) fn is_sound(&self, metrics: usize) -> bool {
        let is_number = |number: &f64| number.is_finite() && *number >= 0.0;
        self.progress.len() == metrics
            && self.progress.iter().all(is_number)
            && is_number(&self.weight)
            && is_number(&self.duration)
            && self.duration > 0.0
    }
}

/// The part of a testpoint with a target of `target` seconds that is learned from, where they take `usual` ones.
pub(crate) fn part(usual: f64, target: Option<f64>) -> f64 {
    target.filter(|target| usual > 0.0 && *target > usual).map_or(1.0, |target| usual / target)
}

/// This part of `progress`.
pub(crate) fn scaled(progress: &[f64], part: f64) -> Vec<f64> {
    progress.iter().map(|p| part * p).collect()
}

/// How long testpoints usually take, and the seconds per unit of each metric, from the first ones.
pub(crate) fn first_target(first: &[Kept], nu: f64) -> Option<(f64, Vec<f64>)> {
    let metrics = first.first()?.progress.len();
    let usual = median(first.iter().map(|kept| kept.duration));
    let moved: Vec<f64> =
        (0..metrics).map(|metric| median(first.iter().map(|kept| kept.progress[metric]))).collect();
    // Where it is not known yet what takes how long, a metric's median stands for the usual time.
    let times = |kept: &Kept| {
        let times = kept.progress.iter().zip(&moved).filter(|(_, usual)| **usual > 0.0);
        times.map(|(p, usual)| p / usual).fold(0.0, f64::max)
    };
    let mut seconds = fit(first, nu, |kept| part(1.0, Some(times(kept))))?;
    // Shortening changes the coefficients by which it is done. Three rounds settle it.
    for _ in 0..3 {
        seconds = fit(first, nu, |kept| part(usual, Some(duration_of(&kept.progress, &seconds))))?;
    }
    Some((usual, seconds))
}

fn fit(first: &[Kept], nu: f64, part: impl Fn(&Kept) -> f64) -> Option<Vec<f64>> {
    let mut statistics = Statistics::new(first.first()?.progress.len());
    for kept in first {
        let part = part(kept);
        statistics.add(1.0, 1.0, part * kept.duration, &scaled(&kept.progress, part));
    }
    statistics.seconds_per_unit(nu)
}

/// The median of what is above zero, if anything is; else zero.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut moved: Vec<f64> = numbers.filter(|number| *number > 0.0).collect();
    moved.sort_by(f64::total_cmp);
    moved.get(moved.len() / 2).copied().unwrap_or(0.0)
}
