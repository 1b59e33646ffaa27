//! Predicted against actual disk I/O, and what is charged in the end against the kernel's account: DiscNice tables 4
//! and 7.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};

use super::program::{self, Program};
use crate::disk::DeviceCounters;
use crate::frame::experiment::{Experiment, Scale, Step};
use crate::frame::record::{Record, Sample};
use crate::frame::requirement::Requirement;
use crate::frame::study::{Study, of_case};
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::proc::Calls;

/// Where the report of `discnice run --report FILE.json` has the sum of all predictions, and what the files
/// that were made cost beside their data, as calibration knows: journal, inodes, directories.
const PREDICTED: [&str; 2] = ["/disk/predicted_bytes", "/disk/file_overhead_bytes"];
/// Where it has what was charged in the end.
const CHARGED: [&str; 2] = ["/disk/read_bytes", "/disk/written_bytes"];

/// The case in which predictions are corrected has this behind the program's name: what is charged is
/// compared with the kernel's account of the program.
const SETTLED: &str = ", settled";
/// Runs a command, and leaves the account of it and its children (proc_pid_io(5)) in a file.
const ACCOUNTED: &str = "account=$1; shift; \"$@\"; status=$?; \
    while read -r line; do echo \"$line\"; done </proc/$$/io >\"$account\"; exit $status";

/// What says where the host profile is kept: of this lab only.
const PROFILES: &str = "XDG_CACHE_HOME";

/// Programs with predicted disk I/O, without a limit.
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
        let cases = self.programs.iter().flat_map(|program| {
            let name = program.name();
            [name.to_owned(), format!("{name}{SETTLED}")].map(|case| (case, seconds(program)))
        });
        (cases.collect(), scale.rounds(5, 1))
    }

    fn cannot(&self, lab: &Lab, case: &str) -> Option<String> {
        self.find(case).ok()?.lack(lab)
    }

    fn prepare(&self, lab: &Lab, scale: Scale) -> anyhow::Result<()> {
        if self.programs.iter().any(|program| program.makes_files()) {
            calibrate(lab)?;
        }
        self.programs.iter().try_for_each(|program| program.prepare(lab, scale))
    }

    fn measure(&self, lab: &Lab, step: &Step) -> anyhow::Result<Sample> {
        let program = self.find(&step.case)?;
        program.begin(lab)?;
        let command = program.command(lab, step.scale);
        let (commands, actual, predicted) = if step.case.ends_with(SETTLED) {
            settled(lab, &command)?
        } else {
            predicted(lab, &command)?
        };
        let values = [("actual".to_owned(), actual), ("predicted".to_owned(), predicted)];
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
            for case in [name.to_owned(), format!("{name}{SETTLED}")] {
                let actual = of_case(&record.samples, &case, "actual");
                let predicted = of_case(&record.samples, &case, "predicted");
                let errors = actual.into_iter().zip(&predicted).map(|(actual, predicted)| {
                    // A program that hardly touches the disk is judged by what it asks for; else
                    // inodes and the journal, tens of KB in every program's count, would be all
                    // that is compared.
                    let whole = program.asks().map_or(actual, |asked| actual.max(asked as f64));
                    100.0 * (predicted - actual).abs() / whole.max(4096.0)
                });
                study.report(&format!("error {case}"), errors.collect());
            }
        }
        study
    }
}

impl Prediction {
    fn find(&self, case: &str) -> anyhow::Result<Program> {
        program::find(self.programs, case.strip_suffix(SETTLED).unwrap_or(case))
    }
}

/// The command as typed, what the disk moved in bytes, and what was predicted without any correction.
fn predicted(lab: &Lab, command: &Command) -> anyhow::Result<(Vec<String>, f64, f64)> {
    let before = DeviceCounters::of(lab.device()?)?;
    let (commands, predicted) = reported(lab, command, "predict", PREDICTED)?;
    lab.flush()?;
    let after = DeviceCounters::of(lab.device()?)?;
    let bytes = |counters: DeviceCounters| counters.read_bytes + counters.write_bytes;
    Ok((commands, (bytes(after) - bytes(before)) as f64, predicted))
}

/// The command as typed, what the kernel accounts it for in bytes, and what it was charged in the end.
fn settled(lab: &Lab, command: &Command) -> anyhow::Result<(Vec<String>, f64, f64)> {
    let file = lab.memory().join("account");
    let mut accounted = lab.command("sh");
    accounted.args(["-c", ACCOUNTED, "sh"]).arg(&file).arg(command.get_program());
    accounted.args(command.get_args());
    let (commands, charged) = reported(lab, &accounted, "auto", CHARGED)?;
    let account = fs::read_to_string(&file).context("the shell has left no account")?;
    Ok((commands, Calls::parse(&account).disk_bytes as f64, charged))
}

/// Runs a command without a limit; the command as typed, and the sum of two numbers of its report.
fn reported(
    lab: &Lab,
    command: &Command,
    estimator: &str,
    places: [&str; 2],
) -> anyhow::Result<(Vec<String>, f64)> {
    let report = lab.memory().join("report.json");
    let name = report.to_str().context("the temporary folder's name is no text")?;
    let options = ["--disk", "unlimited", "--estimator", estimator, "--report", name];
    let mut command = lab.limited(&options, command)?;
    let job = Job::start(command.env(PROFILES, lab.memory()))?;
    let commands = vec![job.words().to_owned()];
    job.finish()?;
    Ok((commands, sum(&report, places)?))
}

/// Has `discnice` measure this disk's file system, as a user that wants predictions does once.
fn calibrate(lab: &Lab) -> anyhow::Result<()> {
    let mut command = lab.command(lab.site.discnice()?);
    command.args(["calibrate", "--force", "--dir"]).arg(lab.folder()).env(PROFILES, lab.memory());
    Job::start(&mut command)?.finish().map(drop)
}

/// The sum of the numbers at `places` of a report.
fn sum(report: &Path, places: [&str; 2]) -> anyhow::Result<f64> {
    let text = fs::read(report).context("discnice has written no report")?;
    let report: serde_json::Value =
        serde_json::from_slice(&text).context("discnice's report is no JSON")?;
    let number = |place| {
        let found = report.pointer(place).and_then(serde_json::Value::as_f64);
        found.ok_or_else(|| anyhow!("discnice's report has no number at {place}"))
    };
    places.into_iter().map(number).sum()
}
