//! `discnice attach`: regulate processes that run already.

use std::process::ExitCode;

use crate::output::{say, tell};
use anyhow::{Context, bail, ensure};
use clap::Args;
use discnice_benice::tree::{Process, Tree, stat};
use discnice_benice::{Metric, Options, Summary, regulate};
use discnice_manners::Config;
use rustix::process::{Pid, getpid};
use serde_json::json;

/// Regulate running processes and their descendants until they end.
#[derive(Debug, Args)]
pub struct Attach {
    /// Stop the job while others need what it uses: watch its progress, step aside when it drops
    #[arg(long, required = true)]
    polite: bool,

    /// What counts as progress: cpu, bytes, read, written, operations, faults, position:PATH,
    /// lines:PATH, match:PATH:REGEX or openmetrics:SOURCE#NAME; may be repeated [default: cpu and
    /// bytes]
    #[arg(long = "metric", value_name = "SPEC")]
    metrics: Vec<Metric>,

    /// Use the plain back-off and calibration of the MS Manners paper, to compare
    #[arg(long)]
    paper: bool,

    /// Skip the probation of a job whose targets are not known yet
    #[arg(long)]
    no_probation: bool,

    /// Print a summary in the end
    #[arg(long)]
    summary: bool,

    /// Print the summary as one JSON object: `lasted_s`, `suspended_s`, `suspensions`, `blind_looks`
    #[arg(long)]
    json: bool,

    /// The processes
    #[arg(value_name = "PID", required = true)]
    pids: Vec<i32>,
}

impl Attach {
    /// Regulates until the processes have ended.
    ///
    /// # Errors
    /// One line for people: which PID cannot be regulated and why.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let roots = self.pids.iter().map(|&pid| root(pid)).collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(
            !Tree::new(&roots).contains(getpid()),
            "this command descends from one of the processes and would stop itself; start it elsewhere"
        );
        let mut config = if self.paper { Config::paper() } else { Config::default() };
        if self.no_probation {
            config.probation = discnice_units::Nanos(0);
        }
        let metrics = if self.metrics.is_empty() { Metric::default_set() } else { self.metrics };
        let targets = discnice_testpoint::paths::targets();
        let options = Options { roots, metrics, config, targets, take_turns: true };
        let summary =
            regulate(&options, &mut |line| tell!("discnice: {line}")).context("cannot regulate")?;
        if self.json {
            say!("{}", as_json(&summary))?;
        } else if self.summary {
            let (stopped, lasted) = (summary.suspended, summary.lasted);
            say!("stopped {} times, for {stopped} of {lasted}", summary.suspensions)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The process of this PID, if it may be stopped.
fn root(pid: i32) -> anyhow::Result<Process> {
    if pid < 1 {
        bail!("{pid} is no PID; give the PID of a running process");
    }
    let pid = Pid::from_raw(pid).context("0 is no PID")?;
    let number = pid.as_raw_nonzero();
    let found =
        stat(pid).with_context(|| format!("no process {number}; give a running one's PID"))?;
    rustix::process::test_kill_process(pid)
        .with_context(|| format!("process {number} may not be stopped by this user"))?;
    Ok(found.process)
}

fn as_json(summary: &Summary) -> serde_json::Value {
    json!({
        "lasted_s": summary.lasted.as_secs_f64(),
        "suspended_s": summary.suspended.as_secs_f64(),
        "suspensions": summary.suspensions,
        "blind_looks": summary.blind,
    })
}
