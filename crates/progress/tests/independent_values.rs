//! The paper's mathematics against independent values: a statistics library, a linear algebra
//! library, and numbers worked out by hand.

use discnice_progress::model::binomial::{MAX_SAMPLE, Thresholds, idle_suspension_frac};
use discnice_progress::model::ridge::Statistics;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use statrs::distribution::{Binomial, DiscreteCDF};

//= ms-manners/6.1-sign-test
#[test]
fn thresholds_agree_with_a_statistics_library() {
    for (alpha, beta) in [(0.05, 0.2), (0.01, 0.05), (0.001, 0.4)] {
        let thresholds = Thresholds::new(alpha, beta);
        for n in 1..=MAX_SAMPLE {
            let tails = Binomial::new(0.5, n as u64).unwrap();
            for r in 0..=n {
                let at_most = tails.cdf(r as u64);
                let at_least = if r == 0 { 1.0 } else { tails.sf(r as u64 - 1) };
                // Where the tail hits the parameter within rounding, either answer is right.
                if (at_least - alpha).abs() > 1e-9 {
                    assert_eq!(thresholds.is_poor(n, r), at_least < alpha, "n {n} r {r}");
                }
                if (at_most - beta).abs() > 1e-9 {
                    assert_eq!(thresholds.is_good(n, r), at_most < beta, "n {n} r {r}");
                }
            }
        }
    }
}

//= ms-manners/6.1-minimum
#[test]
fn equation_1_minimum_sample() {
    for alpha in [0.3, 0.25, 0.1, 0.05, 0.01, 0.001] {
        let m = Thresholds::new(alpha, 0.4).minimum_sample();
        assert_eq!(m as f64, (-alpha.log2()).ceil(), "alpha {alpha}");
    }
}

//= ms-manners/6.1-idle-cost
#[test]
fn equation_3_is_the_sum_that_it_abbreviates() {
    for (alpha, beta, m) in [(0.05, 0.2, 5), (0.01, 0.3, 7), (0.1, 0.25, 4)] {
        // Equation 2 gives p_k; the sum converges because alpha < beta.
        let ratio: f64 = alpha / (alpha + beta);
        let p = |k: i32| beta / (alpha + beta) * ratio.powi(k);
        let sum: f64 = (0..2000).map(|k| alpha * 2f64.powi(k.min(1000)) / m as f64 * p(k)).sum();
        let q = 1.0 - 1.0 / (1.0 + sum);
        assert!((q - idle_suspension_frac(alpha, beta, m)).abs() < 1e-9, "{q}");
    }
    // The paper's own parameters: about one percent, worked out by hand 0.01 / 0.76.
    assert!((idle_suspension_frac(0.05, 0.2, 5) - 0.013_157_894_7).abs() < 1e-9);
}

/// Ridge regression by a library: (X'X + nu tr(X'X) I)^-1 X'd with X the samples as rows.
fn library_ridge(samples: &[(f64, Vec<f64>)], nu: f64) -> Option<DVector<f64>> {
    let k = samples[0].1.len();
    let rows = DMatrix::from_fn(samples.len(), k, |i, j| samples[i].1[j]);
    let durations = DVector::from_fn(samples.len(), |i, _| samples[i].0);
    let normal = rows.transpose() * &rows;
    let offset = DMatrix::identity(k, k) * (nu * normal.trace());
    (normal + offset).lu().solve(&(rows.transpose() * durations))
}

fn statistics(samples: &[(f64, Vec<f64>)]) -> Statistics {
    let mut statistics = Statistics::new(samples[0].1.len());
    for (duration, progress) in samples {
        statistics.add(1.0, 1.0, *duration, progress);
    }
    statistics
}

fn samples() -> impl Strategy<Value = Vec<(f64, Vec<f64>)>> {
    (1usize..5).prop_flat_map(|k| {
        let sample = (0.01..10.0f64, prop::collection::vec(0.5..100.0f64, k));
        prop::collection::vec(sample, 20..60)
    })
}

proptest! {
    //= ms-manners/6.3-statistics
    #[test]
    fn ridge_agrees_with_a_library_solver(samples in samples()) {
        let ours = statistics(&samples).solve(1e-6).unwrap();
        let theirs = library_ridge(&samples, 1e-6).unwrap();
        for (a, b) in ours.iter().zip(theirs.iter()) {
            prop_assert!((a - b).abs() <= 1e-6 * (1e-3 + b.abs()), "{a} {b}");
        }
    }

    //= ms-manners/4.4-regression
    //= ms-manners/6.3-model
    #[test]
    fn true_rates_are_recovered(
        rates in prop::collection::vec(0.1..1000.0f64, 1..5),
        seeds in prop::collection::vec(prop::collection::vec(0.0..1.0f64, 4), 60),
    ) {
        let samples: Vec<_> = seeds
            .iter()
            .map(|seed| {
                let progress: Vec<f64> = rates.iter().zip(seed).map(|(r, s)| r * s).collect();
                (progress.iter().zip(&rates).map(|(p, r)| p / r).sum::<f64>(), progress)
            })
            .collect();
        let seconds = statistics(&samples).seconds_per_unit(1e-11).unwrap();
        for (second, rate) in seconds.iter().zip(&rates) {
            prop_assert!((second * rate - 1.0).abs() < 1e-4, "{second} {rate}");
        }
    }

    //= ms-manners/4.4-overlap
    #[test]
    fn targets_are_never_negative(samples in samples()) {
        if let Some(seconds) = statistics(&samples).seconds_per_unit(1e-11) {
            prop_assert!(seconds.iter().all(|s| *s >= 0.0 && s.is_finite()), "{seconds:?}");
        }
    }

    //= ms-manners/6.3-statistics
    #[test]
    fn merging_is_adding(samples in samples(), cut in 1usize..19) {
        let (early, late) = samples.split_at(cut);
        let mut merged = statistics(early);
        merged.merge(&statistics(late));
        let (a, b) = (merged.solve(1e-6).unwrap(), statistics(&samples).solve(1e-6).unwrap());
        for (x, y) in a.iter().zip(&b) {
            prop_assert!((x - y).abs() <= 1e-6 * (1.0 + y.abs()));
        }
    }
}
