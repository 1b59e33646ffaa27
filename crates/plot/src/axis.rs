//! A linear axis from zero with round marks.

/// Maps numbers to positions on paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    end: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from 0 to a round number of at least `largest`, drawn from `from` to `to`.
    #[must_use]
    pub fn new(largest: f64, from: f64, to: f64) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let rough = largest / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(10.0 * power);
        Self { end: (largest / step - 0.001).ceil().max(1.0) * step, step, from, to }
    }

    /// Where `number` is on paper.
    #[must_use]
    pub fn place(&self, number: f64) -> f64 {
        self.from + (self.to - self.from) * (number / self.end)
    }

    /// The marks with their texts.
    #[must_use]
    pub fn marks(&self) -> Vec<(f64, String)> {
        let decimals = (0..6).find(|d| (self.step * 10f64.powi(*d)).fract() < 1e-9).unwrap_or(6);
        let count = (self.end / self.step).round() as u32;
        (0..=count)
            .map(|n| {
                let number = f64::from(n) * self.step;
                (self.place(number), format!("{number:.*}", decimals as usize))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(largest: f64) -> Vec<String> {
        Axis::new(largest, 0.0, 1.0).marks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(texts(17.3), ["0", "5", "10", "15", "20"]);
        assert_eq!(texts(1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(0.012), ["0.0000", "0.0025", "0.0050", "0.0075", "0.0100", "0.0125"]);
        assert_eq!(texts(-3.0), texts(1.0));
        assert_eq!(texts(f64::NAN), texts(1.0));
    }

    #[test]
    fn places_follow_the_paper_downwards() {
        let axis = Axis::new(10.0, 200.0, 0.0);
        assert_eq!((axis.place(0.0), axis.place(5.0), axis.place(10.0)), (200.0, 100.0, 0.0));
    }
}
