//! Repeated runs over data larger than the cache, what is cached first or not: gray-box section
//! 4.1.3, figures 2 and 3.

use std::fs;

use anyhow::Context;
use discnice_plot::{Chart, Plot};
use discnice_units::Bytes;

use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case, ratios};
use crate::lab::memory_limit::MemoryLimit;
use crate::lab::{Lab, files};

/// The data are half as much again as the memory, so a third comes from the disk at best.
const MEMORY: Bytes = Bytes::new(104 << 20);
const FILES: u64 = 36;
const FILE_BYTES: u64 = 4 << 20;
/// A run leaves the cache that the next one finds; the last one counts.
const RUNS: usize = 3;

/// Case, and the script of one run.
const CASES: [(&str, &str); 4] = [
    ("scan, plain", "cat big > /dev/null"),
    ("scan, order --cat", "\"$1\" order --cat big > /dev/null"),
    ("grep, plain", "grep --text --count no-such-word files/* > /dev/null"),
    (
        "grep, order --cached",
        "grep --text --count no-such-word $(\"$1\" order --cached files/*) > /dev/null",
    ),
];

/// A scan of one file and a grep over many.
pub struct WarmCache;

impl Experiment for WarmCache {
    fn requirements(&self) -> Vec<Requirement> {
        vec![
            Requirement::Disk,
            Requirement::Discnice,
            Requirement::MemoryLimit,
            Requirement::Program("grep"),
        ]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        (CASES.map(|(case, _)| (case.to_owned(), 7.0)).into(), scale.rounds(5, 1))
    }

    fn prepare(&self, lab: &Lab, _scale: Scale) -> anyhow::Result<()> {
        let folder = lab.folder().join("files");
        files::empty_folder(lab, &folder)?;
        for number in 0..FILES {
            files::make(lab, &folder.join(format!("file-{number:02}")), FILE_BYTES)?;
        }
        files::make(lab, &lab.folder().join("big"), FILES * FILE_BYTES)
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let found = CASES.iter().find(|(case, _)| *case == step.case);
        let (_, script) = found.with_context(|| format!("no case {}", step.case))?;
        // What another group has cached stays charged to it.
        lab.cold()?;
        let discnice = lab.site.discnice()?;
        let discnice = discnice.to_str().context("the path of discnice is no text")?;
        let group = MemoryLimit::new(MEMORY)?;
        let mut sample = Sample { case: step.case.clone(), round: step.round, ..Sample::default() };
        // grep(1) finds nothing, which is no failure here.
        let script = format!("{{ {script}; test $? -le 1; }}");
        for run in 1..=RUNS {
            let job = group.start(lab, &script, &[discnice])?;
            sample.commands.push(job.words().to_owned());
            let (seconds, calls) = job.finish_counted()?;
            sample.values.insert(format!("seconds of run {run}"), seconds);
            sample.values.insert(format!("disk bytes of run {run}"), calls.disk_bytes as f64);
        }
        let last = sample.values[&format!("seconds of run {RUNS}")];
        sample.values.insert("seconds".into(), last);
        lab.cold()?;
        fs::metadata(lab.folder()).context("the disk is gone")?;
        Ok(sample)
    }

    /// Keys: `scan gain`, `grep gain`: time without an order over that with it.
    fn study(&self, record: &Record) -> Study {
        let mut study = grep(std::slice::from_ref(record));
        study.report("scan gain", gain(record, "scan"));
        study
    }
}

/// Figure 3 of the same samples.
pub fn grep(records: &[Record]) -> Study {
    let mut study = Study::default();
    let Some(record) = records.first() else { return study };
    study.report("grep gain", gain(record, "grep"));
    let times = CASES.map(|(case, _)| (case.into(), of_case(&record.samples, case, "seconds")));
    study.plots.push(Plot {
        title: "Third run over data half as large again as the cache".into(),
        x_label: String::new(),
        y_label: "seconds".into(),
        chart: Chart::Boxes(times.into()),
    });
    study
}

fn gain(record: &Record, what: &str) -> Vec<f64> {
    let cases: Vec<&str> =
        CASES.iter().map(|(case, _)| *case).filter(|case| case.starts_with(what)).collect();
    ratios(&record.samples, cases[0], cases[1], "seconds")
}
