//! Comparing a measured number with the paper's.

use crate::frame::paper::{Paper, PaperValue};
use crate::frame::study::{Study, quantile};

/// What comes out of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within all bounds and the tolerance.
    Holds,
    /// Within all bounds, but further from the paper's number than its tolerance.
    Differs,
    /// Out of a bound.
    Fails,
    /// No number was measured.
    NotMeasured,
    /// Neither bound nor tolerance: stands for comparison only.
    Shown,
}

impl Verdict {
    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "holds, size differs",
            Self::Fails => "does not hold",
            Self::NotMeasured => "not measured",
            Self::Shown => "",
        }
    }
}

/// One number of the paper with ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is.
    pub label: String,
    /// Unit of all numbers of the row.
    pub unit: String,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    /// Median of the rounds.
    pub median: Option<f64>,
    /// Smallest and largest of the rounds.
    pub range: Option<(f64, f64)>,
    /// How many rounds.
    pub rounds: usize,
    /// Bounds in words; empty without.
    pub bounds: String,
    /// The comparison.
    pub verdict: Verdict,
}

/// All rows of a paper file.
#[must_use]
pub fn rows(paper: &Paper, study: &Study) -> Vec<Row> {
    let none = Vec::new();
    paper
        .value
        .iter()
        .map(|value| row(value, study.values.get(&value.key).unwrap_or(&none)))
        .collect()
}

fn row(value: &PaperValue, numbers: &[f64]) -> Row {
    let median = quantile(numbers, 0.5);
    let range = quantile(numbers, 0.0).zip(quantile(numbers, 1.0));
    let bounds = [("at least", value.at_least), ("at most", value.at_most)]
        .into_iter()
        .filter_map(|(word, bound)| Some(format!("{word} {}", bound?)))
        .chain(value.open.iter().map(|why| {
            let side = if value.at_most.is_none() { "above" } else { "below" };
            format!("open {side}: {why}")
        }))
        .collect::<Vec<_>>()
        .join(", ");
    Row {
        label: value.label.clone(),
        unit: value.unit.clone(),
        paper: value.paper,
        median,
        range,
        rounds: numbers.len(),
        bounds,
        verdict: median.map_or(Verdict::NotMeasured, |median| judge(value, median)),
    }
}

fn judge(value: &PaperValue, median: f64) -> Verdict {
    let too_small = value.at_least.is_some_and(|bound| median < bound);
    let too_large = value.at_most.is_some_and(|bound| median > bound);
    let is_bounded = value.at_least.is_some() || value.at_most.is_some();
    // What was divided by nothing is within no bound.
    if too_small || too_large || (is_bounded && !median.is_finite()) {
        return Verdict::Fails;
    }
    match value.paper.zip(value.tolerance) {
        Some((paper, tolerance)) if (median - paper).abs() <= tolerance * paper.abs() => {
            Verdict::Holds
        }
        Some(_) => Verdict::Differs,
        None if value.at_least.is_some() || value.at_most.is_some() => Verdict::Holds,
        None => Verdict::Shown,
    }
}

/// The phenomenon holds if nothing fails; what was not measured leaves it open.
#[must_use]
pub fn whole(rows: &[Row]) -> Verdict {
    let bounded = || rows.iter().filter(|row| !row.bounds.is_empty());
    if rows.iter().any(|row| row.verdict == Verdict::Fails) {
        Verdict::Fails
    } else if bounded().count() == 0 || bounded().any(|row| row.verdict == Verdict::NotMeasured) {
        Verdict::NotMeasured
    } else if rows.iter().any(|row| row.verdict == Verdict::Differs) {
        Verdict::Differs
    } else {
        Verdict::Holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(paper: Option<f64>, tolerance: Option<f64>, at_least: Option<f64>) -> PaperValue {
        PaperValue {
            key: "k".into(),
            label: "l".into(),
            unit: "s".into(),
            paper,
            tolerance,
            at_least,
            at_most: None,
            open: at_least.map(|_| "why".into()),
        }
    }

    #[test]
    fn judgements() {
        let both = value(Some(4.0), Some(0.25), Some(2.0));
        assert_eq!(judge(&both, 4.9), Verdict::Holds);
        assert_eq!(judge(&both, 9.0), Verdict::Differs);
        assert_eq!(judge(&both, 1.9), Verdict::Fails);
        assert_eq!(judge(&value(Some(4.0), None, None), 4.0), Verdict::Shown);
        assert_eq!(row(&both, &[]).verdict, Verdict::NotMeasured);
        for nothing in [f64::NAN, -f64::NAN, f64::INFINITY] {
            assert_eq!(judge(&value(None, None, Some(2.0)), nothing), Verdict::Fails, "{nothing}");
            assert_eq!(judge(&both, nothing), Verdict::Fails, "{nothing}");
        }
        assert_eq!(row(&both, &[]).bounds, "at least 2, open above: why");
    }

    #[test]
    fn the_whole_is_as_weak_as_its_weakest_bound() {
        let bounded = value(None, None, Some(2.0));
        let shown = value(Some(1.0), None, None);
        let rows = |numbers: [&[f64]; 2]| [row(&bounded, numbers[0]), row(&shown, numbers[1])];
        assert_eq!(whole(&rows([&[3.0], &[]])), Verdict::Holds);
        assert_eq!(whole(&rows([&[], &[1.0]])), Verdict::NotMeasured);
        assert_eq!(whole(&rows([&[1.0], &[1.0]])), Verdict::Fails);
        assert_eq!(whole(&[row(&shown, &[1.0])]), Verdict::NotMeasured);
    }
}
