//! Incremental statistics: constant space, one pass.

//= gray-box/5-statistics
/// Mean, standard deviation, least and greatest of the values pushed (Welford's recurrence).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    count: u64,
    mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for Stats {
    fn default() -> Self {
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Stats {
    /// Takes in one more value.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// How many values were pushed.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mean; 0 of no values.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// The sample standard deviation; 0 of fewer than two values.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// The least value; infinity of none.
    #[must_use]
    pub const fn min(&self) -> f64 {
        self.min
    }

    /// The greatest value; minus infinity of none.
    #[must_use]
    pub const fn max(&self) -> f64 {
        self.max
    }
}

impl Extend<f64> for Stats {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

/// Pearson's correlation of the pairs pushed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Correlation {
    x: Stats,
    y: Stats,
    /// Sum of products of the differences from both means.
    products: f64,
}

impl Correlation {
    /// Takes in one more pair.
    pub fn push(&mut self, x: f64, y: f64) {
        let from_old = x - self.x.mean();
        self.x.push(x);
        self.y.push(y);
        self.products += from_old * (y - self.y.mean());
    }

    /// Between -1 and 1; `None` if one of the two never varied.
    #[must_use]
    pub fn coefficient(&self) -> Option<f64> {
        let scale = (self.x.squares * self.y.squares).sqrt();
        (scale > 0.0).then(|| (self.products / scale).clamp(-1.0, 1.0))
    }
}

/// The median of a stream in constant space: the P-square algorithm (Jain, Chlamtac 1985) with
/// five markers. Exact up to five values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Median {
    count: u64,
    heights: [f64; 5],
    positions: [f64; 5],
}

impl Median {
    /// Takes in one more value.
    pub fn push(&mut self, value: f64) {
        if self.count < 5 {
            let filled = self.count as usize;
            self.heights[filled] = value;
            self.heights[..=filled].sort_by(f64::total_cmp);
            self.positions[filled] = filled as f64;
            self.count += 1;
            return;
        }
        self.count += 1;
        self.heights[0] = self.heights[0].min(value);
        self.heights[4] = self.heights[4].max(value);
        for marker in 1..5 {
            if value < self.heights[marker] || marker == 4 {
                self.positions[marker] += 1.0;
            }
        }
        for marker in 1..4 {
            self.adjust(marker);
        }
    }

    /// Moves an inner marker by one towards where its quantile should be.
    fn adjust(&mut self, marker: usize) {
        let wanted = (self.count - 1) as f64 * marker as f64 / 4.0;
        let off = wanted - self.positions[marker];
        let (below, here, above) =
            (self.positions[marker - 1], self.positions[marker], self.positions[marker + 1]);
        let step = if off >= 1.0 && above - here > 1.0 {
            1.0
        } else if off <= -1.0 && below - here < -1.0 {
            -1.0
        } else {
            return;
        };
        let (low, height, high) =
            (self.heights[marker - 1], self.heights[marker], self.heights[marker + 1]);
        let up = (high - height) / (above - here);
        let down = (height - low) / (here - below);
        let parabolic = height
            + step / (above - below) * ((here - below + step) * up + (above - here - step) * down);
        self.heights[marker] = if low < parabolic && parabolic < high {
            parabolic
        } else if step > 0.0 {
            height + up
        } else {
            height - down
        };
        self.positions[marker] += step;
    }

    /// The median so far; `None` of no values.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        match self.count {
            0 => None,
            count @ 1..=5 => median_of(&self.heights[..count as usize]),
            _ => Some(self.heights[2]),
        }
    }
}

/// The exact median; `None` of no values.
#[must_use]
pub fn median_of(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Keeps the values within `limit` scaled median absolute deviations of the median: unlike a
/// bound by the standard deviation it does not move with the outliers themselves. With normal
/// noise, `limit` 3 keeps 99.7 %.
pub fn discard_outliers(values: &mut Vec<f64>, limit: f64) {
    /// Makes the deviation of a normal distribution of its median absolute deviation.
    const SCALE: f64 = 1.4826;
    let Some(median) = median_of(values) else { return };
    let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    let spread = median_of(&distances).unwrap_or(0.0) * SCALE;
    if spread > 0.0 {
        values.retain(|value| (value - median).abs() <= limit * spread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let mut stats = Stats::default();
        stats.extend([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((stats.mean(), stats.min(), stats.max()), (5.0, 2.0, 9.0));
        assert!((stats.deviation() - 2.138_089_935).abs() < 1e-9);
        assert_eq!(Stats::default().deviation(), 0.0);

        let mut line = Correlation::default();
        for x in 0..10 {
            line.push(f64::from(x), f64::from(3 - 2 * x));
        }
        assert_eq!(line.coefficient(), Some(-1.0));
        assert_eq!(Correlation::default().coefficient(), None);
    }

    #[test]
    fn outliers_go_and_the_rest_stays() {
        let mut values = vec![10.0, 11.0, 9.0, 10.5, 9.5, 1000.0];
        discard_outliers(&mut values, 5.0);
        assert_eq!(values, [10.0, 11.0, 9.0, 10.5, 9.5]);
        let mut equal = vec![1.0; 5];
        discard_outliers(&mut equal, 3.0);
        assert_eq!(equal.len(), 5);
    }

    proptest! {
        //= gray-box/5-statistics
        #[test]
        fn as_the_two_pass_formulas(values in prop::collection::vec(-1e6f64..1e6, 2..200)) {
            let mut stats = Stats::default();
            stats.extend(values.iter().copied());
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((stats.mean() - mean).abs() < 1e-6 * (1.0 + mean.abs()));
            prop_assert!((stats.deviation() - variance.sqrt()).abs() < 1e-6 * (1.0 + variance));
        }

        #[test]
        fn streaming_median_is_near_the_exact_one(
            values in prop::collection::vec(0f64..1000.0, 1..2000)
        ) {
            let mut median = Median::default();
            for value in &values {
                median.push(*value);
            }
            let exact = median_of(&values).unwrap();
            let near = median.get().unwrap();
            if values.len() <= 5 {
                prop_assert_eq!(near, exact);
            } else {
                // In ranks: at least a fifth of the values lies on either side of the estimate.
                let below = values.iter().filter(|v| **v <= near).count() as f64;
                let share = below / values.len() as f64;
                prop_assert!((0.2..=0.8).contains(&share), "{near} is at {share}, exact {exact}");
            }
        }
    }
}
