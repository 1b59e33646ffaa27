//! A figure of the profile from its repetitions.

use std::time::SystemTime;

use crate::profile::store::{Figure, FigureName, FigureUnit};
use crate::toolbox::{Stats, discard_outliers};

/// Place of a figure in the profile.
pub(super) struct Place {
    pub(super) device: String,
    pub(super) file_system: String,
}

pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The better quartile of the repetitions, as what disturbs only makes slower, and their spread
/// without outliers; `None` without repetitions.
pub(super) fn figure(
    name: FigureName,
    unit: FigureUnit,
    mut samples: Vec<f64>,
    place: Option<&Place>,
) -> Option<Figure> {
    let count = samples.len();
    samples.sort_by(f64::total_cmp);
    let value = *samples.get(match unit {
        FigureUnit::Nanoseconds => count / 4,
        FigureUnit::BytesPerSecond => count * 3 / 4,
    })?;
    discard_outliers(&mut samples, 3.0);
    let mut stats = Stats::default();
    stats.extend(samples);
    Some(Figure {
        name,
        value,
        unit,
        spread: stats.deviation(),
        samples: count as u64,
        device: place.map(|place| place.device.clone()),
        file_system: place.map(|place| place.file_system.clone()),
        date: now(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_a_part_of_the_time_does_not_count() {
        let figure = |samples: Vec<f64>, unit| {
            figure(FigureName::Seek, unit, samples, None).map(|figure| figure.value)
        };
        let times = vec![900.0, 10.0, 950.0, 11.0, 12.0, 900.0, 910.0, 10.0];
        assert_eq!(figure(times, FigureUnit::Nanoseconds), Some(11.0));
        let rates = vec![100.0, 20.0, 102.0, 30.0];
        assert_eq!(figure(rates, FigureUnit::BytesPerSecond), Some(102.0));
        assert_eq!(figure(Vec::new(), FigureUnit::Nanoseconds), None);
    }
}
