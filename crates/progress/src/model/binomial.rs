//! Exact thresholds of the paired-sample sign test (paper section 6.1).
//!
//! If progress is exactly on target, each sample falls below it with probability one half, so the
//! number of samples below is binomial with p = 1/2. Row n of Pascal's triangle divided by 2^n
//! is computed from row n - 1 by halving sums of neighbours, which loses nothing but rounding.

/// The largest sample that the test keeps; a longer indecision starts a new sample.
pub const MAX_SAMPLE: usize = 256;

/// The counts at which the sign test decides, for every sample size up to [`MAX_SAMPLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thresholds {
    /// `poor[n]`: smallest r with P(R >= r) <= alpha; n + 1 where no r is that rare.
    poor: Vec<u16>,
    /// `good[n]`: one more than the largest r with P(R <= r) <= beta; 0 where no r is that rare.
    good: Vec<u16>,
}

impl Thresholds {
    //= ms-manners/6.1-thresholds
    /// Thresholds for a probability `alpha` of calling good progress poor and `beta` of calling
    /// marginally poor progress good.
    #[must_use]
    pub fn new(alpha: f64, beta: f64) -> Self {
        let mut poor = Vec::with_capacity(MAX_SAMPLE + 1);
        let mut good = Vec::with_capacity(MAX_SAMPLE + 1);
        let mut row = vec![1.0];
        for n in 0..=MAX_SAMPLE {
            if n > 0 {
                row = next_row(&row);
            }
            // The row is symmetric, so both tails are the same sums.
            let rare_high = rarest(&row, alpha);
            let rare_low = rarest(&row, beta);
            poor.push(narrow(n + 1 - rare_high));
            good.push(narrow(rare_low));
        }
        Self { poor, good }
    }

    //= ms-manners/6.1-sign-test
    /// Returns true if `below` of `n` samples lagging are too many for progress on target.
    #[must_use]
    pub fn is_poor(&self, n: usize, below: usize) -> bool {
        self.poor.get(n).is_some_and(|&at_least| below >= usize::from(at_least))
    }

    /// Returns true if `below` of `n` samples lagging are too few for marginally poor progress.
    #[must_use]
    pub fn is_good(&self, n: usize, below: usize) -> bool {
        self.good.get(n).is_some_and(|&fewer_than| below < usize::from(fewer_than))
    }

    //= ms-manners/6.1-minimum
    /// Equation 1, m: the fewest samples with which the test can recognise poor progress.
    #[must_use]
    pub fn minimum_sample(&self) -> usize {
        (0..=MAX_SAMPLE).find(|&n| self.is_poor(n, n)).unwrap_or(MAX_SAMPLE)
    }
}

/// How many of the first entries of `row` together stay at or below `probability`.
fn rarest(row: &[f64], probability: f64) -> usize {
    let mut tail = 0.0;
    row.iter()
        .take_while(|&&p| {
            tail += p;
            tail <= probability
        })
        .count()
}

fn next_row(row: &[f64]) -> Vec<f64> {
    let mut next = Vec::with_capacity(row.len() + 1);
    next.push(row[0] / 2.0);
    next.extend(row.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])));
    next.push(row[row.len() - 1] / 2.0);
    next
}

fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

//= ms-manners/6.1-idle-cost
/// Equation 3, q: the mean share of time that a job with good progress is suspended, where
/// testpoints and the initial suspension have the same length.
#[must_use]
pub fn idle_suspension_frac(alpha: f64, beta: f64, m: usize) -> f64 {
    let product = alpha * beta;
    product / (product + m as f64 * (beta - alpha))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ms-manners/6.1-thresholds
    #[test]
    fn the_papers_parameters() {
        let thresholds = Thresholds::new(0.05, 0.2);
        assert_eq!(thresholds.minimum_sample(), 5);
        assert!(thresholds.is_poor(5, 5) && !thresholds.is_poor(4, 4));
        // 1/8 <= 0.2 < 1/4: three samples without one below are good, two are not.
        assert!(thresholds.is_good(3, 0) && !thresholds.is_good(2, 0));
    }

    #[test]
    fn beyond_the_table_nothing_is_decided() {
        let thresholds = Thresholds::new(0.05, 0.2);
        assert!(!thresholds.is_poor(MAX_SAMPLE + 1, MAX_SAMPLE + 1));
        assert!(!thresholds.is_good(MAX_SAMPLE + 1, 0));
    }
}
