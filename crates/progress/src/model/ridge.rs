//! Linear regression of durations on progress (paper section 6.3, equations 8 to 14).
//!
//! A duration is modelled as the sum of what each metric's progress takes:
//! d = sum over k of progress_k / rate_k. The regression finds the seconds per unit, 1 / rate_k,
//! from exponentially averaged *sufficient statistics*, so memory stays constant.

use serde::{Deserialize, Serialize};

/// The most metrics in one set; enough for every example of section 5, and bounds the cost of
/// solving at a testpoint.
pub const MAX_METRICS: usize = 16;

//= ms-manners/6.3-model
/// The sufficient statistics x and y of equations 9 and 10, and how many samples they stand for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Row-major k by k: sums of products of progress, in units squared.
    x: Vec<f64>,
    /// Sums of duration times progress, in seconds times units.
    y: Vec<f64>,
    /// Discounted number of samples.
    weight: f64,
}

impl Statistics {
    /// No samples of `metrics` metrics.
    #[must_use]
    pub fn new(metrics: usize) -> Self {
        Self { x: vec![0.0; metrics * metrics], y: vec![0.0; metrics], weight: 0.0 }
    }

    /// How many metrics.
    #[must_use]
    pub fn metrics(&self) -> usize {
        self.y.len()
    }

    /// Discounted number of samples.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.weight
    }

    //= ms-manners/6.3-statistics
    /// Equations 11 and 12: multiplies what is there by `keep` (the paper's xi) and adds one
    /// sample of `progress` (a number a metric) that took `duration` seconds, `weight` times
    /// (the paper: once).
    pub fn add(&mut self, keep: f64, weight: f64, duration: f64, progress: &[f64]) {
        let k = self.metrics();
        for (i, &p) in progress.iter().enumerate().take(k) {
            for (j, &q) in progress.iter().enumerate().take(k) {
                self.x[i * k + j] = keep * self.x[i * k + j] + weight * p * q;
            }
            self.y[i] = keep * self.y[i] + weight * duration * p;
        }
        self.weight = keep * self.weight + weight;
    }

    /// Adds another set's statistics, as if its samples had been added here.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.x.iter_mut().zip(&other.x) {
            *mine += theirs;
        }
        for (mine, theirs) in self.y.iter_mut().zip(&other.y) {
            *mine += theirs;
        }
        self.weight += other.weight;
    }

    /// Returns true if these numbers can have come from samples: right sizes, all finite, squares
    /// positive.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let k = self.metrics();
        (1..=MAX_METRICS).contains(&k)
            && self.x.len() == k * k
            && self.x.iter().chain(&self.y).all(|v| v.is_finite() && *v >= 0.0)
            && self.weight.is_finite()
            && self.weight >= 0.0
            && (0..k).all(|i| (0..k).all(|j| self.x[i * k + j] == self.x[j * k + i]))
    }

    //= ms-manners/4.4-regression
    /// Equations 13 and 14 and the normal equations, literally: seconds per unit of each metric.
    ///
    /// `None` where the equations have no solution even with the offset `nu`.
    #[must_use]
    pub fn solve(&self, nu: f64) -> Option<Vec<f64>> {
        let k = self.metrics();
        let omega: f64 = (0..k).map(|i| self.x[i * k + i]).sum();
        let mut offset = self.x.clone();
        for i in 0..k {
            offset[i * k + i] += nu * omega;
        }
        cholesky(offset, self.y.clone())
    }

    //= ms-manners/4.4-overlap
    /// Seconds per unit of each metric, none negative.
    ///
    /// Two steps beyond the paper. Metrics are first measured in units of their own root mean
    /// square: otherwise bytes (10^8 a testpoint) make the offset larger than everything that
    /// operations (10 a testpoint) have to say. And since progress cannot take negative time,
    /// a metric with a negative coefficient is left out and the rest solved again.
    #[must_use]
    pub fn seconds_per_unit(&self, nu: f64) -> Option<Vec<f64>> {
        let k = self.metrics();
        let mut kept: Vec<usize> = (0..k).filter(|&i| self.x[i * k + i] > 0.0).collect();
        while !kept.is_empty() {
            let scales: Vec<f64> = kept.iter().map(|&i| self.x[i * k + i].sqrt()).collect();
            let scaled = self.select(&kept, &scales).solve(nu)?;
            let (worst, &least) = scaled.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))?;
            if least < 0.0 {
                kept.remove(worst);
                continue;
            }
            let mut seconds = vec![0.0; k];
            for ((&i, scale), coefficient) in kept.iter().zip(&scales).zip(&scaled) {
                seconds[i] = coefficient / scale;
            }
            return Some(seconds);
        }
        None
    }

    //= ms-manners/6.3-ridge
    /// The statistics of the metrics `kept`, each divided by its scale.
    fn select(&self, kept: &[usize], scales: &[f64]) -> Self {
        let k = self.metrics();
        let mut x = Vec::with_capacity(kept.len() * kept.len());
        for (&i, si) in kept.iter().zip(scales) {
            x.extend(kept.iter().zip(scales).map(|(&j, sj)| self.x[i * k + j] / (si * sj)));
        }
        let y = kept.iter().zip(scales).map(|(&i, si)| self.y[i] / si).collect();
        Self { x, y, weight: self.weight }
    }
}

/// Solves the symmetric positive definite system `a` · s = `b` (row-major `a`); `None` where `a` is
/// not positive definite.
fn cholesky(mut a: Vec<f64>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let k = b.len();
    for i in 0..k {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|l| a[i * k + l] * a[j * k + l]).sum();
            let rest = a[i * k + j] - dot;
            if i == j {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                a[i * k + i] = rest.sqrt();
            } else {
                a[i * k + j] = rest / a[j * k + j];
            }
        }
    }
    for i in 0..k {
        let dot: f64 = (0..i).map(|l| a[i * k + l] * b[l]).sum();
        b[i] = (b[i] - dot) / a[i * k + i];
    }
    for i in (0..k).rev() {
        let dot: f64 = (i + 1..k).map(|l| a[l * k + i] * b[l]).sum();
        b[i] = (b[i] - dot) / a[i * k + i];
    }
    Some(b)
}

//= ms-manners/4.4-durations
/// Equation 8: seconds that `progress` should take at `seconds_per_unit`.
#[must_use]
pub fn duration_of(progress: &[f64], seconds_per_unit: &[f64]) -> f64 {
    progress.iter().zip(seconds_per_unit).map(|(p, s)| p * s).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ms-manners/4.4-durations
    #[test]
    fn the_papers_content_indexer() {
        // Section 4.4: 750 kB/s scanned and 120 indices/s added.
        let mut statistics = Statistics::new(2);
        for (kilobytes, indices) in [(60.0, 5.0), (10.0, 12.0), (75.0, 0.0), (33.0, 7.0)] {
            statistics.add(1.0, 1.0, kilobytes / 750.0 + indices / 120.0, &[kilobytes, indices]);
        }
        let seconds = statistics.seconds_per_unit(1e-11).unwrap();
        let target = duration_of(&[60.0, 5.0], &seconds);
        assert!((target - 0.1217).abs() < 0.0005, "{target}");
    }

    //= ms-manners/6.3-ridge
    #[test]
    fn one_byte_metric_does_not_drown_a_count() {
        let mut statistics = Statistics::new(2);
        for i in 0..100 {
            let (bytes, operations) = (1e9 + f64::from(i % 7) * 1e8, f64::from(1 + i % 5));
            statistics.add(1.0, 1.0, bytes / 1e10 + operations * 0.01, &[bytes, operations]);
        }
        let seconds = statistics.seconds_per_unit(1e-11).unwrap();
        assert!((seconds[1] - 0.01).abs() < 1e-5, "{seconds:?}");
    }

    //= ms-manners/6.3-ridge
    #[test]
    fn equal_metrics_share_the_time() {
        let mut statistics = Statistics::new(2);
        for i in 1..50 {
            let p = f64::from(i);
            statistics.add(1.0, 1.0, p * 0.5, &[p, p]);
        }
        let seconds = statistics.seconds_per_unit(1e-11).unwrap();
        assert!((duration_of(&[4.0, 4.0], &seconds) - 2.0).abs() < 1e-3, "{seconds:?}");
        assert!(seconds.iter().all(|s| *s >= 0.0));
    }

    #[test]
    fn nothing_can_be_said_without_progress() {
        let mut statistics = Statistics::new(2);
        assert_eq!(statistics.seconds_per_unit(1e-11), None);
        statistics.add(1.0, 1.0, 1.0, &[0.0, 0.0]);
        assert_eq!(statistics.seconds_per_unit(1e-11), None);
    }
}
