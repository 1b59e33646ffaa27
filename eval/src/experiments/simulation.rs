//! Days of a regulated job in simulated time: MS Manners sections 9.5 and 9.6, figures 9 and 10. The
//! regulator is the product's; the program that simulates a machine around it is an example of crate
//! manners, built by `cargo build --release -p discnice-progress --example figures`.

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};

use crate::built;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::Study;
use crate::lab::Lab;
use crate::tool;

/// Figures 9 and 10 at once.
pub struct Simulation;

const CASE: &str = "simulated";
/// Load on the first disk in figure 9, in seconds.
const LOADED: (f64, f64) = (120.0, 240.0);
const PAPER: &str = "paper";
const OURS: &str = "ours";

impl Experiment for Simulation {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Simulation]
    }

    fn cases(&self, _scale: Scale) -> (Vec<(String, f64)>, u32) {
        (vec![(CASE.into(), 1.0)], 1)
    }

    fn prepare(&self, _lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, _lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let program = built::SIMULATION.file()?;
        let program = program.to_str().context("the simulation's path is no text")?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        sample.commands.push(format!("{program} --csv"));
        for line in tool::run(program, ["--csv"])?.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            if let [figure @ ("9" | "10"), variant, x, y] = fields[..]
                && let (Ok(x), Ok(y)) = (x.parse(), y.parse())
            {
                sample.series.entry(format!("{figure} {variant}")).or_default().push((x, y));
            }
        }
        Ok(sample)
    }

    /// Keys: `start PAPER-OR-OURS`, `half …`, `day …`: targets in ms at the end of the first burst, after half a day and a
    /// day; `activity …`, `loaded …`: how much of the second day the job ran, and how much of that under load, in %.
    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        let courses = |name: &str| {
            let name = format!("10 {name}");
            record.samples.iter().filter_map(move |sample| sample.series.get(&name)).next()
        };
        for name in [PAPER, OURS] {
            let at = |hour: f64| {
                let found = courses(name)?.iter().find(|(x, _)| *x == hour)?;
                Some(found.1)
            };
            study.report(&format!("start {name}"), at(0.25).into_iter().collect());
            study.report(&format!("half {name}"), at(12.0).into_iter().collect());
            for what in ["activity", "loaded"] {
                let course = courses(&format!("{name} {what}"));
                let last = course.and_then(|course| course.last());
                study.report(&format!("{what} {name}"), last.iter().map(|point| point.1).collect());
            }
            study.report(&format!("day {name}"), at(24.0).into_iter().collect());
        }
        let series = [(PAPER, "the paper's regulator"), (OURS, "ours")].map(|(name, words)| {
            let points = courses(name).cloned().unwrap_or_default();
            Series { name: words.into(), points }
        });
        study.plots.push(Plot {
            title: "Target, begun within a load".into(),
            x_label: "hours".into(),
            y_label: "ms between testpoints".into(),
            chart: Chart::Lines { series: series.into(), threshold: Some(480.0) },
        });
        study
    }
}

/// Which of two threads ran while the first one's disk was loaded: figure 9.
///
/// Keys: `loaded`, `idle`: % of the time that the thread of the loaded and of the idle disk ran.
pub fn isolation(records: &[Record]) -> Study {
    let mut study = Study::default();
    let samples = || records.iter().flat_map(|record| &record.samples);
    let mut series = Vec::new();
    for (key, thread) in [("loaded", "9 ours disk C"), ("idle", "9 ours disk D")] {
        let courses: Vec<&Vec<(f64, f64)>> =
            samples().filter_map(|sample| sample.series.get(thread)).collect();
        study.report(key, courses.iter().map(|course| 100.0 * activity(course)).collect());
        if let Some(course) = courses.first() {
            let points = course.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
            series.push(Series { name: thread[7..].into(), points: points.collect() });
        }
    }
    study.plots.push(Plot {
        title: "Threads of two disks; disk C is loaded from 120 to 240 s, D from 360 to 480 s"
            .into(),
        x_label: "seconds".into(),
        y_label: "1: runs".into(),
        chart: Chart::Lines { series, threshold: None },
    });
    study
}

/// How much of the load's time a thread ran; its course has a 1 where it begins and a 0 where it
/// stops.
fn activity(course: &[(f64, f64)]) -> f64 {
    let (from, to) = LOADED;
    let stretches = course.windows(2).filter(|pair| pair[0].1 > 0.0);
    let ran: f64 = stretches.map(|pair| (pair[1].0.min(to) - pair[0].0.max(from)).max(0.0)).sum();
    ran / (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_falls_into_the_load_counts() {
        let course =
            [(0.0, 1.0), (132.0, 0.0), (180.0, 1.0), (192.0, 0.0), (230.0, 1.0), (300.0, 0.0)];
        assert!((activity(&course) - (12.0 + 12.0 + 10.0) / 120.0).abs() < 1e-9);
        assert_eq!(activity(&[]), 0.0);
    }
}
