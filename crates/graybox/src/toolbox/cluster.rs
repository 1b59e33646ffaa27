//! Two-cluster split (section 4.2.4): the cut of sorted values with the least variance within the
//! two groups and, which is the same cut, the greatest between them.

/// A split of values into a low and a high group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// How many values are in the low group; neither group is empty.
    pub low_count: usize,
    /// Values at or below this are in the low group: halfway between the two groups.
    pub cut: f64,
    /// Mean of the low group.
    pub low_mean: f64,
    /// Mean of the high group.
    pub high_mean: f64,
    /// Share of the total variance that the split explains, at most 1. Noise of one single group
    /// explains about two thirds, so that only more than that speaks for two groups.
    pub explained_frac: f64,
}

//= gray-box/4.2.4-clusters
/// Splits the values in two; `None` if there are fewer than two different ones. Takes
/// O(n log n) for the sorting and one pass.
#[must_use]
pub fn split(values: &[f64]) -> Option<Split> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let total: f64 = sorted.iter().sum();
    let mean = total / count;
    let variance: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let mut best: Option<Split> = None;
    let mut low_sum = 0.0;
    for (index, pair) in sorted.windows(2).enumerate() {
        low_sum += pair[0];
        if pair[0] == pair[1] {
            continue;
        }
        let low = (index + 1) as f64;
        let (low_mean, high_mean) = (low_sum / low, (total - low_sum) / (count - low));
        let between = low * (low_mean - mean).powi(2) + (count - low) * (high_mean - mean).powi(2);
        let explained_frac = (between / variance).min(1.0);
        if best.is_none_or(|best| explained_frac > best.explained_frac) {
            let cut = f64::midpoint(pair[0], pair[1]);
            best = Some(Split { low_count: index + 1, cut, low_mean, high_mean, explained_frac });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_heaps_are_told_apart() {
        let split = split(&[1.0, 100.0, 1.2, 0.9, 103.0, 98.0, 1.1]).unwrap();
        assert_eq!(split.low_count, 4);
        assert!(split.low_mean < 2.0 && split.high_mean > 97.0 && split.explained_frac > 0.99);
        assert!(split.cut > 1.2 && split.cut < 98.0);
    }

    #[test]
    fn nothing_to_split() {
        assert_eq!(split(&[]), None);
        assert_eq!(split(&[1.0]), None);
        assert_eq!(split(&[2.0; 9]), None);
    }

    proptest! {
        //= gray-box/4.2.4-clusters
        /// No cut at all has less variance within the groups than the one returned.
        #[test]
        fn is_the_best_of_all_cuts(values in prop::collection::vec(0f64..1000.0, 2..40)) {
            fn within(group: &[f64]) -> f64 {
                let mean = group.iter().sum::<f64>() / group.len() as f64;
                group.iter().map(|v| (v - mean).powi(2)).sum()
            }
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            if let Some(found) = split(&values) {
                let (low, high) = sorted.split_at(found.low_count);
                let ours = within(low) + within(high);
                for cut in 1..sorted.len() {
                    let (low, high) = sorted.split_at(cut);
                    prop_assert!(ours <= within(low) + within(high) + 1e-6);
                }
            }
        }
    }
}
