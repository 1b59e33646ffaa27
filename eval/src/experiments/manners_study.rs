//! What follows from samples of a regulated background: MS Manners figures 3 to 8.

use discnice_plot::{Chart, Plot, Series};

use super::manners_case::{self as case, GIVEN_UP};
use crate::frame::record::{Record, Sample};
use crate::frame::study::{Study, median, of_case, ratios};

/// Below this part of its rate alone the background counts as suspended.
const SUSPENDED: f64 = 0.1;

/// Increase of the foreground's time: figures 3 and 4.
///
/// Keys: `unregulated`, `nice`, `regulated`, in %.
pub fn times(record: &Record) -> Study {
    let mut study = Study::default();
    let value = "foreground seconds";
    let names = [(case::BOTH, "unregulated"), (case::NICE, "nice"), (case::POLITE, "regulated")];
    for (name, key) in names {
        let ratios = ratios(&record.samples, name, case::FOREGROUND, value);
        study.report(key, ratios.into_iter().map(percent_more).collect());
    }
    let names = [case::FOREGROUND, case::BOTH, case::NICE, case::POLITE];
    study.plots.push(boxes(record, "Time of the foreground", value, &names));
    study
}

/// The background's own time without contention: figure 5.
///
/// Key: `benice`, increase in %.
pub fn idle(records: &[Record]) -> Study {
    let mut study = Study::default();
    let Some(record) = &records.first().map(with_given_up) else { return study };
    let value = "background seconds";
    let ratios = ratios(&record.samples, case::REGULATED, case::BACKGROUND, value);
    study.report("benice", ratios.into_iter().map(percent_more).collect());
    let names = [case::BACKGROUND, case::REGULATED];
    study.plots.push(boxes(record, "Time of the background alone", value, &names));
    study
}

/// The background's own time beside the foreground: figure 6.
///
/// Keys: `unregulated`, `regulated`: added time over the foreground's own.
pub fn own_time(records: &[Record]) -> Study {
    let mut study = Study::default();
    let Some(record) = &records.first().map(with_given_up) else { return study };
    let of = |name: &str, value: &str| of_case(&record.samples, name, value);
    let alone = median(&of(case::BACKGROUND, "background seconds"));
    let foreground = median(&of(case::FOREGROUND, "foreground seconds"));
    for (name, key) in [(case::BOTH, "unregulated"), (case::POLITE, "regulated")] {
        let times = of(name, "background seconds");
        let added = times.iter().filter_map(|time| Some((time - alone?) / foreground?));
        study.report(key, added.collect());
    }
    let names = [case::BACKGROUND, case::BOTH, case::NICE, case::POLITE];
    study.plots.push(boxes(record, "Time of the background", "background seconds", &names));
    study
}

/// The record with at least a lower bound for each time of a background: without those that were given up, just the worst
/// would be left out.
fn with_given_up(record: &Record) -> Record {
    let mut record = record.clone();
    for sample in &mut record.samples {
        if let Some(after) = sample.values.get(GIVEN_UP).copied() {
            sample.values.insert("background seconds".into(), after);
        }
    }
    record
}

/// When the regulated background ran: figure 7.
///
/// Keys: `before`, `beside`, `after`: how much of the time it ran, in %, before, beside and after
/// the foreground; `overshoot`: seconds from the foreground's end to its next progress.
pub fn duty(records: &[Record]) -> Study {
    let mut study = Study::default();
    let Some(record) = records.first() else { return study };
    let Some(usual) = mean_rate(record, case::BACKGROUND) else { return study };
    let polite: Vec<&Sample> =
        record.samples.iter().filter(|sample| sample.case == case::POLITE).collect();
    for (key, phase) in [("before", 0), ("beside", 1), ("after", 2)] {
        let duties = polite.iter().filter_map(|sample| duty_in(sample, usual, phase));
        study.report(key, duties.map(|duty| 100.0 * duty).collect());
    }
    let overshoots = polite.iter().filter_map(|sample| {
        let end = *sample.values.get("end")?;
        let course = sample.series.get("background")?;
        let next = course.iter().find(|(time, rate)| *time > end && *rate > SUSPENDED * usual);
        // One that was given up was suspended for at least as long as it was waited for.
        let last = course.last().filter(|_| sample.values.contains_key(GIVEN_UP));
        Some(next.or(last)?.0 - end)
    });
    study.report("overshoot", overshoots.collect());
    for sample in polite {
        let Some(course) = sample.series.get("background") else { continue };
        let ran = |(time, rate): &(f64, f64)| (*time, f64::from(*rate > SUSPENDED * usual));
        study.plots.push(Plot {
            title: format!("Duty of the background, foreground from {}", span(sample)),
            x_label: "seconds".into(),
            y_label: "1: runs".into(),
            chart: Chart::Lines {
                series: vec![Series {
                    name: "ran".into(),
                    points: course.iter().map(ran).collect(),
                }],
                threshold: None,
            },
        });
    }
    study
}

/// Progress of the background over its usual progress: figure 8.
///
/// The control is a regulator that compares each measurement with the target by itself: it suspends whenever one is below.
/// Its target is the mean rate of the background that nothing regulates, so that no figure follows from how it is
/// computed, and a background that is suspended for no reason does not look as if it was not measured. Keys: `direct`: in how many half seconds without contention that control would suspend, in %; `false`:
/// how often a minute the product did; `ran`: in how many half seconds it ran, in %.
pub fn progress(records: &[Record]) -> Study {
    let mut study = Study::default();
    let Some(record) = records.first() else { return study };
    let Some(usual) = mean_rate(record, case::BACKGROUND) else { return study };
    let (mut direct, mut falsely, mut ran) = (Vec::new(), Vec::new(), Vec::new());
    for sample in record.samples.iter().filter(|sample| sample.case == case::REGULATED) {
        let Some(course) = sample.series.get("background") else { continue };
        let share = |above: f64| {
            let count = course.iter().filter(|(_, rate)| *rate > above).count();
            100.0 * count as f64 / course.len().max(1) as f64
        };
        direct.push(100.0 - share(usual));
        ran.push(share(SUSPENDED * usual));
        falsely.push(stops(course, SUSPENDED * usual));
    }
    study.report("direct", direct);
    study.report("false", falsely);
    study.report("ran", ran);
    for sample in record.samples.iter().filter(|sample| sample.case == case::POLITE) {
        let Some(course) = sample.series.get("background") else { continue };
        let points = course.iter().map(|(time, rate)| (*time, rate / usual)).collect();
        study.plots.push(Plot {
            title: format!("Progress of the background, foreground from {}", span(sample)),
            x_label: "seconds".into(),
            y_label: "times the usual".into(),
            chart: Chart::Lines {
                series: vec![Series { name: "progress".into(), points }],
                threshold: Some(1.0),
            },
        });
    }
    study
}

/// The mean rate of a case's background, in bytes a second.
fn mean_rate(record: &Record, name: &str) -> Option<f64> {
    let samples = record.samples.iter().filter(|sample| sample.case == name);
    let courses = samples.filter_map(|sample| sample.series.get("background"));
    let rates: Vec<f64> = courses.flatten().map(|(_, rate)| *rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    (mean > 0.0).then_some(mean)
}

/// How often a minute a course falls to `low` or below and stays there for two points at least.
fn stops(course: &[(f64, f64)], low: f64) -> f64 {
    let is_low = |point: &(f64, f64)| point.1 <= low;
    let begins = course.windows(3).filter(|w| !is_low(&w[0]) && is_low(&w[1]) && is_low(&w[2]));
    let minutes = course.last().map_or(0.0, |last| last.0) / 60.0;
    if minutes > 0.0 { begins.count() as f64 / minutes } else { 0.0 }
}

/// How much of a phase (0 before, 1 beside, 2 after the foreground) the background ran.
fn duty_in(sample: &Sample, usual: f64, phase: usize) -> Option<f64> {
    let (begin, end) = (*sample.values.get("begin")?, *sample.values.get("end")?);
    let (from, to) = [(0.0, begin), (begin, end), (end, f64::INFINITY)][phase];
    let course = sample.series.get("background")?;
    let within: Vec<f64> = course
        .iter()
        .filter(|(time, _)| *time > from && *time <= to)
        .map(|(_, rate)| *rate)
        .collect();
    let ran = within.iter().filter(|rate| **rate > SUSPENDED * usual).count();
    (!within.is_empty()).then(|| ran as f64 / within.len() as f64)
}

fn span(sample: &Sample) -> String {
    let value = |name: &str| sample.values.get(name).copied().unwrap_or(f64::NAN);
    format!("{:.1} to {:.1} s", value("begin"), value("end"))
}

fn percent_more(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

fn boxes(record: &Record, title: &str, value: &str, names: &[&str]) -> Plot {
    let groups =
        names.iter().map(|name| ((*name).to_owned(), of_case(&record.samples, name, value)));
    Plot {
        title: title.into(),
        x_label: String::new(),
        y_label: "seconds".into(),
        chart: Chart::Boxes(groups.collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::facts::Facts;
    use crate::frame::record::Settings;

    /// A record of one round: the foreground takes 10 s from the third on, the regulated background is given up 20 s later.
    fn given_up() -> Record {
        let sample = |case: &str, values: &[(&str, f64)], rates: &[f64]| Sample {
            case: case.into(),
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            series: [(
                "background".to_owned(),
                rates.iter().enumerate().map(|(at, rate)| (at as f64, *rate)).collect(),
            )]
            .into(),
            ..Sample::default()
        };
        let settings = Settings { quick: true, evaluator: String::new(), disk: String::new() };
        let mut record = Record::new("x", String::new(), settings, Facts::default());
        let polite = [("begin", 3.0), ("end", 13.0), ("given up after", 33.0)];
        record.samples = vec![
            sample(case::FOREGROUND, &[("foreground seconds", 10.0)], &[]),
            sample(case::BACKGROUND, &[("background seconds", 8.0)], &[9.0; 8]),
            sample(case::REGULATED, &[("given up after", 90.0)], &[0.0; 90]),
            sample(case::POLITE, &polite, &[[9.0; 4].as_slice(), &[0.0; 30]].concat()),
        ];
        record
    }

    #[test]
    fn a_background_that_was_given_up_is_not_left_out() {
        let records = [given_up()];
        let value = |study: &Study, key: &str| study.values.get(key).cloned().unwrap_or_default();
        assert_eq!(value(&own_time(&records), "regulated"), [2.5]);
        assert_eq!(value(&idle(&records), "benice"), [1025.0]);
        assert_eq!(value(&duty(&records), "overshoot"), [20.0]);
    }

    #[test]
    fn only_what_stays_low_is_a_stop() {
        let course = |rates: &[f64]| -> Vec<(f64, f64)> {
            rates.iter().enumerate().map(|(at, rate)| (at as f64 * 0.5, *rate)).collect()
        };
        let minute = |rates: &[f64]| {
            let course = course(rates);
            stops(&course, 1.0) * course.last().map_or(0.0, |last| last.0) / 60.0
        };
        assert!((minute(&[9.0, 0.0, 9.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0]) - 2.0).abs() < 1e-9);
        assert!(minute(&[9.0; 9]).abs() < 1e-9 && stops(&[], 1.0).abs() < 1e-9);
    }
}
