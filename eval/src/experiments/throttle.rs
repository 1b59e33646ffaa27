//! Programs at a disk rate limit and without one: DiscNice figures 11 and 13.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use discnice_plot::{Chart, Plot, Series};
use discnice_units::Bytes;
use serde::Deserialize;

use super::program::{self, Program};
use crate::frame::course::Sums;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::lab::sampler::Sampler;

const MEGABYTE: f64 = 1e6;

/// Each program with its threshold in bytes a second.
pub struct Throttle {
    /// What is limited to how much.
    pub programs: &'static [(Program, u64)],
}

/// Thresholds of DiscNice figure 13 in bytes a second.
pub const GREP_RATE: u64 = 3_000_000;
/// As [`GREP_RATE`].
pub const TAR_RATE: u64 = 5_000_000;
/// As [`GREP_RATE`].
pub const MAKE_RATE: u64 = 500_000;

/// The case of a program that nothing holds has this behind its name.
pub const FREE: &str = ", not limited";
/// Rates are means over so many seconds.
const SECOND: f64 = 1.0;
/// The course of calls a second that read or write.
pub const OPERATIONS: &str = "program operations";

impl Experiment for Throttle {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Discnice, Requirement::Memory(Bytes::new(1 << 30))]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let cases = self.programs.iter().flat_map(|(program, rate)| {
            let bytes = program.bytes(scale) as f64;
            let limited = (program.name().to_owned(), bytes / *rate as f64);
            [limited, (format!("{}{FREE}", program.name()), bytes / 20e6)]
        });
        (cases.collect(), scale.rounds(5, 1))
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        self.find(case).ok()?.0.lack(lab)
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        self.programs.iter().try_for_each(|(program, _)| program.prepare(lab, scale))
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let (program, rate) = self.find(&step.case)?;
        program.begin(lab)?;
        let command = program.command(lab, step.scale);
        if step.case.ends_with(FREE) {
            return sample(lab, step, command);
        }
        held(lab, step, &command, &["--disk", &format!("{rate}B")])
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for (program, rate) in self.programs {
            let (name, rate) = (program.name(), *rate as f64);
            for value in ["rate", "peak"] {
                let numbers = of_case(&record.samples, name, value);
                let shares = numbers.into_iter().map(|number| number / rate);
                study.report(&format!("{value} {name}"), shares.collect());
            }
            let course = |case: &str, words: &str| {
                let sample = record.samples.iter().find(|sample| sample.case == case)?;
                let course = sample.series.get("device")?;
                let points = course.iter().map(|(time, rate)| (*time, rate / MEGABYTE)).collect();
                Some(Series { name: words.into(), points })
            };
            let free = format!("{name}{FREE}");
            let series = [course(name, "limited"), course(&free, "not limited")];
            study.plots.push(Plot {
                title: format!("{name}: disk rate"),
                x_label: "seconds".into(),
                y_label: "MB/s".into(),
                chart: Chart::Lines {
                    series: series.into_iter().flatten().collect(),
                    threshold: Some(rate / MEGABYTE),
                },
            });
        }
        study
    }
}

/// Runs a command within limits on cold caches, and takes what [`sample`] does and how it was held.
pub fn held(lab: &Lab, step: &Step, command: &Command, limits: &[&str]) -> anyhow::Result<Sample> {
    let report = lab.memory().join("report.json");
    let name = report.to_str().context("the temporary folder's name is no text")?;
    let options = [limits, &["--report", name]].concat();
    let mut sample = sample(lab, step, lab.limited(&options, command)?)?;
    sleeps(&report, &mut sample)?;
    Ok(sample)
}

/// Runs a command, and takes how long it lasts, and what it asks for and the disk does meanwhile.
fn sample(lab: &Lab, step: &Step, mut command: Command) -> anyhow::Result<Sample> {
    let begin = std::time::Instant::now();
    let job = Job::start(&mut command)?;
    let groups = vec![("program", job.group())];
    let sampler = Sampler::start(lab.device()?.to_owned(), groups)?;
    let commands = vec![job.words().to_owned()];
    let (_, calls) = job.finish_counted()?;
    // Written data counts when it reaches the disk.
    lab.flush()?;
    let seconds = begin.elapsed().as_secs_f64();
    let courses = sampler.finish()?;
    let mut sample =
        Sample { case: step.case.clone(), round: step.round, commands, ..Sample::default() };
    sample.values.insert("seconds".into(), seconds);
    sample.values.insert("rate".into(), courses.total("device") / seconds);
    let course = courses.rate("device", SECOND);
    let peak = course.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    sample.values.insert("peak".into(), peak);
    sample.series.insert("device".into(), course);
    for name in ["requests", "program calls"] {
        sample.series.insert(name.into(), courses.rate(name, SECOND));
    }
    // As fine as it is sampled: a hundred calls may take less than a second.
    sample.series.insert(OPERATIONS.into(), courses.rate(OPERATIONS, 0.0));
    sample.values.insert("calls".into(), calls.count as f64);
    sample.values.insert("call bytes".into(), calls.bytes as f64);
    sample.values.insert("device bytes".into(), courses.total("device"));
    Ok(sample)
}

/// How often and how long calls were held, as discnice reports it.
fn sleeps(report: &Path, sample: &mut Sample) -> anyhow::Result<()> {
    let text = fs::read(report).context("discnice has written no report")?;
    let report: Report =
        serde_json::from_slice(&text).context("discnice's report is not as known")?;
    sample.values.insert("waits".into(), report.waits as f64);
    sample.values.insert("waited seconds".into(), report.waited_seconds);
    let bars = report.wait_histogram.iter().map(|bar| (bar.from_seconds, bar.count as f64));
    sample.series.insert("wait histogram".into(), bars.collect());
    Ok(())
}

/// What we use of `discnice run --report FILE.json` (docs/report.md).
#[derive(Deserialize)]
struct Report {
    waits: u64,
    waited_seconds: f64,
    wait_histogram: Vec<Bar>,
}

#[derive(Deserialize)]
struct Bar {
    from_seconds: f64,
    count: u64,
}

/// What the kernel flushes dirty data after (vm.dirty_writeback_centisecs), in seconds.
const FLUSH: f64 = 5.0;

/// Disk rates of the limited writers as means from one flush to the next: DiscNice figure 14.
///
/// Keys: `flush PROGRAM`, the highest mean over the threshold.
pub fn flushes(records: &[Record]) -> Study {
    let mut study = Study::default();
    for (program, rate) in [(Program::Tar, TAR_RATE), (Program::Make, MAKE_RATE)] {
        let (name, rate) = (program.name(), rate as f64);
        let samples = records.iter().flat_map(|record| &record.samples);
        let courses: Vec<Vec<(f64, f64)>> = samples
            .filter(|sample| sample.case == name)
            .filter_map(|sample| Some(Sums::of(sample.series.get("device")?, SECOND).means(FLUSH)))
            .collect();
        let highest =
            |course: &Vec<(f64, f64)>| course.iter().map(|(_, r)| r / rate).fold(0.0, f64::max);
        study.report(&format!("flush {name}"), courses.iter().map(highest).collect());
        let points = courses.into_iter().next().unwrap_or_default();
        let points = points.into_iter().map(|(time, rate)| (time, rate / MEGABYTE)).collect();
        study.plots.push(Plot {
            title: format!("{name}: disk rate, means of {FLUSH} s"),
            x_label: "seconds".into(),
            y_label: "MB/s".into(),
            chart: Chart::Lines {
                series: vec![Series { name: "limited".into(), points }],
                threshold: Some(rate / MEGABYTE),
            },
        });
    }
    study
}

impl Throttle {
    fn find(&self, case: &str) -> anyhow::Result<(Program, u64)> {
        let name = case.strip_suffix(FREE).unwrap_or(case);
        let programs: Vec<Program> = self.programs.iter().map(|(program, _)| *program).collect();
        let program = program::find(&programs, name)?;
        let found = self.programs.iter().find(|(other, _)| *other == program);
        found.copied().context("a program without a limit")
    }
}
