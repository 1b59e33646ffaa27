//! Predicted against actual disk I/O: DiscNice tables 4 and 7.

use std::fs;

use anyhow::{Context, anyhow};

use super::program::{self, Program};
use crate::disk::DeviceCounters;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::Lab;
use crate::lab::job::Job;

/// Where the report of `discnice run --report FILE.json` has the sum of all predictions, and what the files
/// that were made cost beside their data, as calibration knows: journal, inodes, directories.
const PREDICTED: [&str; 2] = ["/disk/predicted_bytes", "/disk/file_overhead_bytes"];

/// What says where the host profile is kept: of this lab only.
const PROFILES: &str = "XDG_CACHE_HOME";

/// Programs whose disk I/O is predicted, without a limit.
pub struct Prediction {
    /// Which.
    pub programs: &'static [Program],
}

impl Experiment for Prediction {
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::Disk, Requirement::Prediction]
    }

    fn cases(&self, scale: Scale) -> (Vec<(String, f64)>, u32) {
        let seconds = |program: &Program| program.bytes(scale) as f64 / 20e6;
        let cases = self.programs.iter().map(|p| (p.name().to_owned(), seconds(p)));
        (cases.collect(), scale.rounds(5, 1))
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        program::find(self.programs, case).ok()?.lack(lab)
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        if self.programs.iter().any(|program| program.makes_files()) {
            calibrate(lab)?;
        }
        self.programs.iter().try_for_each(|program| program.prepare(lab, scale))
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let program = program::find(self.programs, &step.case)?;
        program.begin(lab, step.scale)?;
        let report = lab.memory().join("report.json");
        let name = report.to_str().context("the temporary folder's name is no text")?;
        let options = ["--disk", "unlimited", "--estimator", "predict", "--report", name];
        let before = DeviceCounters::of(lab.device()?)?;
        let mut command = lab.limited(&options, &program.command(lab, step.scale))?;
        command.env(PROFILES, lab.memory());
        let job = Job::start(&mut command)?;
        let commands = vec![job.words().to_owned()];
        job.finish()?;
        lab.flush()?;
        let after = DeviceCounters::of(lab.device()?)?;
        let bytes = |counters: DeviceCounters| counters.read_bytes + counters.write_bytes;
        let values = [
            ("actual".to_owned(), (bytes(after) - bytes(before)) as f64),
            ("predicted".to_owned(), predicted(&report)?),
        ];
        Ok(Sample {
            case: step.case.clone(),
            round: step.round,
            commands,
            values: values.into(),
            ..Sample::default()
        })
    }

    fn study(&self, record: &Record) -> Study {
        let mut study = Study::default();
        for program in self.programs {
            let name = program.name();
            let actual = of_case(&record.samples, name, "actual");
            let predicted = of_case(&record.samples, name, "predicted");
            let errors = actual.into_iter().zip(&predicted).map(|(actual, predicted)| {
                // Who hardly touches the disk is judged by what it asks for; else inodes and the
                // journal, tens of KB in every program's count, would be all that is compared.
                let whole = program.asks().map_or(actual, |asked| actual.max(asked as f64));
                100.0 * (predicted - actual).abs() / whole.max(4096.0)
            });
            study.report(&format!("error {name}"), errors.collect());
        }
        study
    }
}

/// Has `discnice` measure this disk's file system, as whoever wants predictions does once.
fn calibrate(lab: &Lab) -> anyhow::Result<()> {
    let mut command = lab.command(lab.site.discnice()?);
    command.args(["calibrate", "--force", "--dir"]).arg(lab.folder()).env(PROFILES, lab.memory());
    Job::start(&mut command)?.finish().map(drop)
}

fn predicted(report: &std::path::Path) -> anyhow::Result<f64> {
    let text = fs::read(report).context("discnice has written no report")?;
    let report: serde_json::Value =
        serde_json::from_slice(&text).context("discnice's report is no JSON")?;
    let number = |place| {
        let found = report.pointer(place).and_then(serde_json::Value::as_f64);
        found.ok_or_else(|| anyhow!("discnice's report has no number at {place}"))
    };
    PREDICTED.into_iter().map(number).sum()
}
