//! What a study makes of samples: numbers by the keys of the paper file, and plots.

use std::collections::BTreeMap;

use discnice_plot::Plot;
pub use discnice_plot::quantile;

use super::record::Sample;

/// Result of a study.
#[derive(Debug, Default)]
pub struct Study {
    /// Measured numbers, one for each round, by the paper file's keys.
    pub values: BTreeMap<String, Vec<f64>>,
    /// What to draw.
    pub plots: Vec<Plot>,
}

impl Study {
    /// Reports `numbers` under `key`.
    pub fn report(&mut self, key: &str, numbers: Vec<f64>) {
        self.values.insert(key.into(), numbers);
    }
}

/// `value` of all samples of `case`, by round.
#[must_use]
pub fn of_case(samples: &[Sample], case: &str, value: &str) -> Vec<f64> {
    let mut found: Vec<(u32, f64)> = samples
        .iter()
        .filter(|sample| sample.case == case)
        .filter_map(|sample| Some((sample.round, *sample.values.get(value)?)))
        .collect();
    found.sort_by_key(|(round, _)| *round);
    found.into_iter().map(|(_, number)| number).collect()
}

/// `value` of `case` over that of `base`, paired by round.
#[must_use]
pub fn ratios(samples: &[Sample], case: &str, base: &str, value: &str) -> Vec<f64> {
    let number = |case: &str, round: u32| {
        let sample = samples.iter().find(|s| s.case == case && s.round == round)?;
        sample.values.get(value).copied()
    };
    let mut rounds: Vec<u32> = samples.iter().filter(|s| s.case == case).map(|s| s.round).collect();
    rounds.sort_unstable();
    rounds
        .into_iter()
        .filter_map(|round| Some(number(case, round)? / number(base, round)?))
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// The cases in the order of their first sample.
#[must_use]
pub fn cases(samples: &[Sample]) -> Vec<&str> {
    let mut seen: Vec<&str> = Vec::new();
    for sample in samples {
        if !seen.contains(&sample.case.as_str()) {
            seen.push(&sample.case);
        }
    }
    seen
}

/// The middle number.
#[must_use]
pub fn median(numbers: &[f64]) -> Option<f64> {
    quantile(numbers, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(case: &str, round: u32, seconds: f64) -> Sample {
        Sample {
            case: case.into(),
            round,
            values: [("seconds".to_owned(), seconds)].into(),
            ..Sample::default()
        }
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let samples = [
            sample("beside", 1, 30.0),
            sample("alone", 0, 4.0),
            sample("beside", 0, 8.0),
            sample("alone", 1, 10.0),
            sample("beside", 2, 99.0),
        ];
        assert_eq!(ratios(&samples, "beside", "alone", "seconds"), [2.0, 3.0]);
        assert_eq!(of_case(&samples, "beside", "seconds"), [8.0, 30.0, 99.0]);
        assert_eq!(cases(&samples), ["beside", "alone"]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
