//! What calls ask for and what the disk does, of programs held to a rate: Rate Windows section 4,
//! figures 5 to 8 and table 1. The samples are those of DiscNice figure 13, with its thresholds.

use discnice_plot::{Chart, Plot, Series};

use super::program::Program;
use super::throttle::{FREE, GREP_RATE, MAKE_RATE, OPERATIONS, TAR_RATE};
use crate::frame::course::Sums;
use crate::frame::record::{Record, Sample};
use crate::frame::study::Study;

const MEGABYTE: f64 = 1e6;

/// The paper's window (3.2): so many calls, but no more than of so many seconds.
const WINDOW_CALLS: f64 = 100.0;
const WINDOW_SECONDS: f64 = 5.0;

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

/// A rate that varies by less of its mean does not vary.
const STEADY: f64 = 0.001;

/// How evenly disk I/O comes where calls do not: figure 5.
///
/// Keys: `PROGRAM file` and `PROGRAM disk`: standard deviation of the number of calls in a second, and of the
/// bytes that the disk moves in one, over its mean; `PROGRAM smoothed`: the first over the second.
pub fn regularity(records: &[Record]) -> Study {
    let mut study = Study::default();
    for (program, _) in PROGRAMS {
        let found = samples(records, program);
        let courses = |name| found.iter().filter_map(move |sample| sample.series.get(name));
        let disk: Vec<f64> = courses("device").filter_map(|course| variation(course)).collect();
        let seconds = courses(OPERATIONS).map(|course| Sums::of(course, 0.0).seconds());
        let file: Vec<f64> = seconds.filter_map(|course| variation(&course)).collect();
        let smoothed = file.iter().zip(&disk).map(|(file, disk)| file / disk.max(STEADY));
        study.report(&format!("{} smoothed", program.name()), smoothed.collect());
        study.report(&format!("{} file", program.name()), file);
        study.report(&format!("{} disk", program.name()), disk);
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

/// How long the paper's window is at each moment of the compile workload: figure 8.
///
/// Keys: `window limited`, `window free`: its mean in seconds.
pub fn sizes(records: &[Record]) -> Study {
    let mut study = Study::default();
    let all = || records.iter().flat_map(|record| &record.samples);
    let make = Program::Make.name();
    for (key, case) in [("window limited", make.into()), ("window free", format!("{make}{FREE}"))] {
        let courses = all().filter(|sample| sample.case == case);
        let sizes: Vec<Vec<f64>> =
            courses.filter_map(|sample| Some(windows(sample.series.get(OPERATIONS)?))).collect();
        let full = sizes.iter().filter(|sizes| !sizes.is_empty());
        let mean = |sizes: &Vec<f64>| sizes.iter().sum::<f64>() / sizes.len() as f64;
        study.report(key, full.map(mean).collect());
        let Some(sizes) = sizes.first() else { continue };
        study.plots.push(Plot {
            title: format!("{case}: size of the window of {WINDOW_CALLS} calls"),
            x_label: "seconds".into(),
            y_label: "moments".into(),
            chart: Chart::Bars(histogram(sizes)),
        });
    }
    study
}

/// How long the last calls took, at each point of a course of calls a second.
fn windows(course: &[(f64, f64)]) -> Vec<f64> {
    let calls = Sums::of(course, 0.0);
    let full = calls.points().filter(|(_, count)| *count >= WINDOW_CALLS);
    full.map(|(now, count)| (now - calls.moment_of(count - WINDOW_CALLS)).min(WINDOW_SECONDS))
        .collect()
}

/// How many sizes fall into each quarter of a second, by where it begins.
fn histogram(sizes: &[f64]) -> Vec<(String, f64)> {
    const BAR: f64 = 0.25;
    let bars = (WINDOW_SECONDS / BAR) as usize;
    let bar_of = |size: f64| ((size / BAR) as usize).min(bars);
    let count = |bar| sizes.iter().filter(|size| bar_of(**size) == bar).count() as f64;
    (0..=bars).map(|bar| (format!("{:.2}", bar as f64 * BAR), count(bar))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_a_hundred_calls_or_five_seconds() {
        let course = |rate| (0..40).map(|time| (f64::from(time), rate)).collect::<Vec<_>>();
        let is = |size: f64, wanted: f64| (size - wanted).abs() < 1e-9;
        assert!(windows(&course(50.0)).iter().all(|size| is(*size, 2.0)));
        assert!(windows(&course(400.0)).iter().all(|size| is(*size, 0.25)));
        let slow = windows(&course(10.0));
        assert!(!slow.is_empty() && slow.iter().all(|size| is(*size, 5.0)));
        assert!(windows(&course(0.0)).is_empty());
        let bars = histogram(&[0.1, 0.2, 2.0, 5.0]);
        assert_eq!(bars.first(), Some(&("0.00".to_owned(), 2.0)));
        assert_eq!(bars.last(), Some(&("5.00".to_owned(), 1.0)));
    }

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
