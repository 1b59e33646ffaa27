//! What calls ask for and what the disk does, of programs held to a rate: Rate Windows section 4,
//! figures 5 to 7 and table 1. The samples are those of DiscNice figure 13, with its thresholds.

use discnice_plot::{Chart, Plot, Series};

use super::program::Program;
use super::throttle::{GREP_RATE, MAKE_RATE, TAR_RATE};
use crate::frame::record::{Record, Sample};
use crate::frame::study::Study;

const MEGABYTE: f64 = 1e6;

/// The paper's tar, agrep and compile.
const PROGRAMS: [(Program, u64); 3] =
    [(Program::Tar, TAR_RATE), (Program::Grep, GREP_RATE), (Program::Make, MAKE_RATE)];

fn samples(records: &[Record], program: Program) -> Vec<&Sample> {
    let all = records.iter().flat_map(|record| &record.samples);
    all.filter(|sample| sample.case == program.name()).collect()
}

fn number(sample: &Sample, name: &str) -> Option<f64> {
    sample.values.get(name).copied()
}

/// File I/O, disk I/O and mean rates: table 1.
///
/// Keys: `PROGRAM rate`, over the threshold; `PROGRAM file`, file I/O over disk I/O.
pub fn table(records: &[Record]) -> Study {
    let mut study = Study::default();
    for (program, threshold) in PROGRAMS {
        let found = samples(records, program);
        let rates = found.iter().filter_map(|s| Some(number(s, "rate")? / threshold as f64));
        study.report(&format!("{} rate", program.name()), rates.collect());
        let ratio = |s: &&&Sample| Some(number(s, "call bytes")? / number(s, "device bytes")?);
        let shares = found.iter().filter_map(|sample| ratio(&sample));
        study.report(&format!("{} file", program.name()), shares.collect());
    }
    study
}

/// How evenly disk I/O comes where calls do not: figure 5.
///
/// Keys: `PROGRAM file` and `PROGRAM disk`: standard deviation of the rate over a second, over its
/// mean.
pub fn regularity(records: &[Record]) -> Study {
    let mut study = Study::default();
    for (program, _) in PROGRAMS {
        let found = samples(records, program);
        for (key, name) in [("file", "program calls"), ("disk", "device")] {
            let courses = found.iter().filter_map(|sample| sample.series.get(name));
            let variations = courses.filter_map(|course| variation(course));
            study.report(&format!("{} {key}", program.name()), variations.collect());
        }
        let Some(sample) = found.first() else { continue };
        let sizes = sample.series.get("device").zip(sample.series.get("requests"));
        let points = sizes.map_or_else(Vec::new, |(bytes, requests)| {
            let pairs = bytes.iter().zip(requests).filter(|(_, (_, count))| *count > 0.0);
            pairs.map(|((time, bytes), (_, count))| (*time, bytes / count / 1024.0)).collect()
        });
        study.plots.push(Plot {
            title: format!("{}: mean size of a disk request", program.name()),
            x_label: "seconds".into(),
            y_label: "KiB".into(),
            chart: Chart::Lines {
                series: vec![Series { name: "size".into(), points }],
                threshold: None,
            },
        });
    }
    study
}

/// Standard deviation over mean, without the first and last second.
fn variation(course: &[(f64, f64)]) -> Option<f64> {
    let rates: Vec<f64> = course.iter().map(|(_, rate)| *rate).collect();
    let inner = rates.get(1..rates.len().checked_sub(1)?)?;
    let count = inner.len() as f64;
    let mean = inner.iter().sum::<f64>() / count;
    let square = inner.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
    (count >= 2.0 && mean > 0.0).then(|| square.sqrt() / mean)
}

/// How long calls were held: figure 6.
///
/// Keys: `PROGRAM mode`, the commonest wait in ms; `PROGRAM held`, how many calls waited, in %.
pub fn sleeps(records: &[Record]) -> Study {
    let mut study = Study::default();
    for (program, _) in PROGRAMS {
        let found = samples(records, program);
        let histograms = || found.iter().filter_map(|sample| sample.series.get("wait histogram"));
        let mode = |bars: &Vec<(f64, f64)>| {
            let highest = bars.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(highest.0 * 1e3)
        };
        study.report(&format!("{} mode", program.name()), histograms().filter_map(mode).collect());
        let held = found.iter().filter_map(|s| Some(number(s, "waits")? / number(s, "calls")?));
        study.report(&format!("{} held", program.name()), held.map(|h| 100.0 * h).collect());
        let Some(bars) = histograms().next() else { continue };
        let bars = bars.iter().map(|(from, count)| (format!("{:.3}", from * 1e3), *count));
        study.plots.push(Plot {
            title: format!("{}: waits", program.name()),
            x_label: "ms".into(),
            y_label: "count".into(),
            chart: Chart::Bars(bars.collect()),
        });
    }
    study
}

/// What the compile workload asks for and what the disk does: figure 7.
///
/// Keys: `requested`, `disk`: highest second over the threshold.
pub fn compile(records: &[Record]) -> Study {
    let mut study = Study::default();
    let found = samples(records, Program::Make);
    let threshold = MAKE_RATE as f64;
    let mut series = Vec::new();
    for (key, name, words) in
        [("requested", "program calls", "file I/O"), ("disk", "device", "disk I/O")]
    {
        let courses = || found.iter().filter_map(|sample| sample.series.get(name));
        let highest =
            |course: &Vec<(f64, f64)>| course.iter().map(|point| point.1).fold(0.0, f64::max);
        study.report(key, courses().map(|course| highest(course) / threshold).collect());
        if let Some(course) = courses().next() {
            let points = course.iter().map(|(time, rate)| (*time, rate / MEGABYTE)).collect();
            series.push(Series { name: words.into(), points });
        }
    }
    study.plots.push(Plot {
        title: "make: requested and disk rate".into(),
        x_label: "seconds".into(),
        y_label: "MB/s".into(),
        chart: Chart::Lines { series, threshold: Some(threshold / MEGABYTE) },
    });
    study
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_relative_and_without_the_ends() {
        let course = |rates: &[f64]| -> Vec<(f64, f64)> {
            rates.iter().enumerate().map(|(time, rate)| (time as f64, *rate)).collect()
        };
        assert_eq!(variation(&course(&[9.0, 2.0, 2.0, 2.0, 7.0])), Some(0.0));
        assert_eq!(variation(&course(&[0.0, 1.0, 3.0, 0.0])), Some(0.5));
        assert_eq!(variation(&course(&[1.0])), None);
    }
}
