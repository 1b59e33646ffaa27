//! Beyond the paper: which measurements were taken without contention.
//!
//! The paper averages every testpoint and trusts that a regulated job runs little under load. A
//! job that starts under load is not yet regulated, so its first targets are far too slow and
//! take a day to recover (section 9.6). Here the history is cut into windows of testpoints,
//! each with its sufficient statistics. Windows are ranked by how long their progress took; the
//! fastest quarter marks what the machine can do, and only windows nearly as fast as that are
//! used. A minority of lucky windows (a warm cache) cannot shift the mark, and up to three
//! quarters of the history may lie under load.

use serde::{Deserialize, Serialize};

use crate::model::ridge::{Statistics, duration_of};

/// How many windows are kept; when full, neighbours are merged and windows grow to twice as long.
const WINDOWS: usize = 64;
/// Testpoints in a window at first.
const FIRST_LENGTH: f64 = 16.0;
/// A window up to this much slower than the mark counts as uncontended: beyond the chance
/// variation of sixteen testpoints, below what sharing a resource with one other costs.
const NEARLY: f64 = 1.25;

/// A window: statistics for the regression, totals for the ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Window {
    statistics: Statistics,
    /// Seconds.
    duration: f64,
    progress: Vec<f64>,
}

impl Window {
    fn new(metrics: usize) -> Self {
        Self { statistics: Statistics::new(metrics), duration: 0.0, progress: vec![0.0; metrics] }
    }

    fn merge(&mut self, other: &Self) {
        self.statistics.merge(&other.statistics);
        self.duration += other.duration;
        for (mine, theirs) in self.progress.iter_mut().zip(&other.progress) {
            *mine += theirs;
        }
    }

    /// How long this window's progress took, relative to what `seconds_per_unit` expects.
    fn slowness(&self, seconds_per_unit: &[f64]) -> f64 {
        self.duration / duration_of(&self.progress, seconds_per_unit).max(f64::MIN_POSITIVE)
    }
}

/// The history of one metric set while it is on probation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    full: Vec<Window>,
    open: Window,
    length: f64,
}

impl Windows {
    /// An empty history of `metrics` metrics.
    #[must_use]
    pub fn new(metrics: usize) -> Self {
        Self { full: Vec::new(), open: Window::new(metrics), length: FIRST_LENGTH }
    }

    //= ms-manners/11-fewer-measurements
    /// Adds a sample of `progress` that took `duration` seconds.
    pub fn add(&mut self, duration: f64, progress: &[f64]) {
        self.open.statistics.add(1.0, 1.0, duration, progress);
        self.open.duration += duration;
        for (sum, p) in self.open.progress.iter_mut().zip(progress) {
            *sum += p;
        }
        if self.open.statistics.weight() < self.length {
            return;
        }
        let metrics = progress.len();
        self.full.push(std::mem::replace(&mut self.open, Window::new(metrics)));
        if self.full.len() == WINDOWS {
            self.full = self.full.chunks_exact(2).map(merged).collect();
            self.length *= 2.0;
        }
    }

    /// Returns true if the latest sample completed a window.
    #[must_use]
    pub fn just_filled(&self) -> bool {
        self.open.statistics.weight() == 0.0
    }

    //= ms-manners/3-idle-time
    /// The statistics of the windows that ran without contention, as far as can be told; `None`
    /// before four windows are full.
    #[must_use]
    pub fn uncontended(&self, nu: f64) -> Option<Statistics> {
        if self.full.len() < 4 {
            return None;
        }
        let mut chosen = pool(self.full.iter());
        // Choosing changes the coefficients that choose. Three rounds settle it.
        for _ in 0..3 {
            let seconds = chosen.seconds_per_unit(nu)?;
            let mut ranks: Vec<f64> = self.full.iter().map(|w| w.slowness(&seconds)).collect();
            ranks.sort_by(f64::total_cmp);
            let mark = ranks[ranks.len() / 4];
            let fast = |w: &&Window| w.slowness(&seconds) <= NEARLY * mark;
            chosen = pool(self.full.iter().filter(fast));
        }
        Some(chosen)
    }

    /// Returns true if these numbers can have come from samples of `metrics` metrics.
    #[must_use]
    pub fn is_sound(&self, metrics: usize) -> bool {
        let sound = |w: &Window| {
            w.statistics.is_sound()
                && w.statistics.metrics() == metrics
                && w.progress.len() == metrics
                && w.duration.is_finite()
        };
        self.full.len() < WINDOWS
            && self.length >= FIRST_LENGTH
            && sound(&self.open)
            && self.full.iter().all(sound)
    }
}

fn merged(pair: &[Window]) -> Window {
    let mut window = pair[0].clone();
    window.merge(&pair[1]);
    window
}

fn pool<'a>(mut windows: impl Iterator<Item = &'a Window>) -> Statistics {
    let mut sum = windows.next().map_or_else(|| Statistics::new(0), |w| w.statistics.clone());
    for window in windows {
        sum.merge(&window.statistics);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds a unit found from `slow` samples at 3 s and then `fast` at 1 s a unit.
    fn found(slow: u32, fast: u32) -> f64 {
        let mut windows = Windows::new(1);
        for i in 0..slow + fast {
            windows.add(if i < slow { 3.0 } else { 1.0 }, &[1.0]);
        }
        windows.uncontended(1e-11).unwrap().seconds_per_unit(1e-11).unwrap()[0]
    }

    //= ms-manners/3-idle-time
    #[test]
    fn a_load_for_two_thirds_of_the_history_is_left_out() {
        assert!((found(640, 320) - 1.0).abs() < 0.01);
        assert!((found(6400, 3200) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_minority_of_lucky_windows_does_not_count() {
        assert!((found(900, 100) - 3.0).abs() < 0.35);
    }

    #[test]
    fn memory_is_bounded() {
        let mut windows = Windows::new(1);
        (0..100_000).for_each(|_| windows.add(1.0, &[1.0]));
        assert!(windows.full.len() < WINDOWS && windows.is_sound(1));
    }
}
