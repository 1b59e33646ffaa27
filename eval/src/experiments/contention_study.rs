//! What follows from contention samples: times, slowdowns, rates over time, the Pareto plot.

use discnice_plot::{Chart, Plot, Series};

use super::peer::Peer;
use crate::frame::record::{Record, Sample};
use crate::frame::study::{Study, cases, median, of_case, ratios};

const MEGABYTE: f64 = 1e6;
/// Two ways to hold the same rate differ by a twentieth from round to round.
const NOISE: f64 = 1.05;

/// Times by case, and slowdowns against the foreground alone, paired by round.
///
/// Keys: `seconds CASE`, `slowdown CASE`, and `nice over rsync`.
pub fn times(record: &Record) -> Study {
    let mut study = Study::default();
    let samples = &record.samples;
    let alone = Peer::Alone.case();
    let mut boxes = Vec::new();
    for case in cases(samples) {
        let seconds = of_case(samples, case, "seconds");
        boxes.push((case.to_owned(), seconds.clone()));
        study.report(&format!("seconds {case}"), seconds);
        if case != alone {
            study.report(&format!("slowdown {case}"), ratios(samples, case, &alone, "seconds"));
        }
    }
    let nice = ratios(samples, &Peer::Nice.case(), &Peer::Plain.case(), "seconds");
    study.report("nice over rsync", nice);
    study.plots.push(Plot {
        title: "Time of the foreground".into(),
        x_label: String::new(),
        y_label: "seconds".into(),
        chart: Chart::Boxes(boxes),
    });
    study
}

/// [`times`] of the one record that a view shows: DiscNice tables 1 and 2.
pub fn table(records: &[Record]) -> Study {
    records.first().map(times).unwrap_or_default()
}

/// Rates over time in three situations, for each record: DiscNice figure 1.
///
/// Keys: `rate alone`, `rate foreground`, `rate background` in MB/s, of the first record.
pub fn rates(records: &[Record]) -> Study {
    let mut study = Study::default();
    for record in records {
        for (case, situation) in situations() {
            let Some(sample) = record.samples.iter().find(|sample| sample.case == case) else {
                continue;
            };
            let names = ["foreground", "background"];
            let series = names.iter().filter_map(|name| course(sample, name, MEGABYTE)).collect();
            study.plots.push(Plot {
                title: format!("{}: {situation}", record.name),
                x_label: "seconds".into(),
                y_label: "MB/s".into(),
                chart: Chart::Lines { series, threshold: None },
            });
        }
    }
    if let Some(record) = records.first() {
        let mean = |case: &str, bytes: &str| {
            record
                .samples
                .iter()
                .filter(|sample| sample.case == case)
                .filter_map(|s| Some(s.values.get(bytes)? / s.values.get("seconds")? / MEGABYTE))
                .collect::<Vec<f64>>()
        };
        let (alone, plain) = (Peer::Alone.case(), Peer::Plain.case());
        let together = mean(&plain, "device bytes");
        let background = mean(&plain, "background bytes");
        study.report("rate alone", mean(&alone, "device bytes"));
        let pairs = together.iter().zip(&background);
        study.report("rate foreground", pairs.map(|(all, other)| all - other).collect());
        study.report("rate background", background);
        study.report("rate together", together);
    }
    study
}

/// Processor use over time in the same situations: DiscNice figure 2.
///
/// Keys: `cpu alone`, `cpu beside` of the programs under test, `system beside` of everything on the
/// machine; in % of all processors.
pub fn cpu(records: &[Record]) -> Study {
    let mut study = Study::default();
    let (mut alone, mut beside, mut system) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        let percent = 100.0 / record.facts.cpus.max(1) as f64;
        let mean = |sample: &Sample, seconds: &str| {
            Some(sample.values.get(seconds)? / sample.values.get("seconds")? * percent)
        };
        let mut series = Vec::new();
        for (case, situation) in situations() {
            let samples = || record.samples.iter().filter(|sample| sample.case == case);
            let own = samples().filter_map(|sample| mean(sample, "own cpu seconds"));
            if case == Peer::Alone.case() {
                alone.extend(own);
            } else {
                beside.extend(own);
                system.extend(samples().filter_map(|s| mean(s, "system cpu seconds")));
            }
            if let Some(mut line) = samples().find_map(|s| course(s, "own cpu", 1.0 / percent)) {
                line.name = situation.into();
                series.push(line);
            }
        }
        study.plots.push(Plot {
            title: format!("{}: processor use of the programs", record.name),
            x_label: "seconds".into(),
            y_label: "% of all processors".into(),
            chart: Chart::Lines { series, threshold: None },
        });
    }
    study.report("cpu alone", alone);
    study.report("cpu beside", beside);
    study.report("system beside", system);
    study
}

/// Foreground slowdown against background throughput, all peers on one plot.
///
/// Keys: `front CASE` is 1 if no other case is both faster for the background, by more than
/// [`NOISE`], and at most as slow for the foreground, else 0.
pub fn pareto(records: &[Record]) -> Study {
    let mut study = Study::default();
    for record in records {
        let alone = Peer::Alone.case();
        let points: Vec<(String, f64, f64)> = cases(&record.samples)
            .into_iter()
            .filter(|case| *case != alone)
            .filter_map(|case| {
                let slowdown = median(&ratios(&record.samples, case, &alone, "seconds"))?;
                // Of all rounds together: what a short run moves is one or two pieces.
                let all = |value| of_case(&record.samples, case, value).iter().sum::<f64>();
                let rate = all("background bytes") / all("seconds") / MEGABYTE;
                rate.is_finite().then(|| (case.to_owned(), rate, slowdown))
            })
            .collect();
        for (case, rate, slowdown) in &points {
            let others = points.iter().map(|(_, rate, slowdown)| (*rate, *slowdown));
            let is_beaten = beaten((*rate, *slowdown), others);
            study.report(&format!("{} front {case}", record.name), vec![f64::from(!is_beaten)]);
        }
        study.plots.push(Plot {
            title: format!("{}: who pays for the background", record.name),
            x_label: "background throughput, MB/s".into(),
            y_label: "foreground slowdown, times".into(),
            chart: Chart::Points(points),
        });
    }
    study
}

/// Whether some other way lets the background do more, by more than [`NOISE`], and slows the foreground down no more:
/// each is the background's rate and the foreground's slowdown.
pub fn beaten((rate, slowdown): (f64, f64), mut others: impl Iterator<Item = (f64, f64)>) -> bool {
    others
        .any(|(other_rate, other_slowdown)| other_rate > rate * NOISE && other_slowdown <= slowdown)
}

fn situations() -> [(String, &'static str); 3] {
    [
        (Peer::Alone.case(), "alone"),
        (Peer::Plain.case(), "beside rsync"),
        (Peer::Nice.case(), "beside rsync with low priority"),
    ]
}

fn course(sample: &Sample, name: &str, unit: f64) -> Option<Series> {
    let points = sample.series.get(name)?.iter().map(|(time, rate)| (*time, rate / unit)).collect();
    Some(Series { name: name.into(), points })
}
