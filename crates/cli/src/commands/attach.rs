//! `discnice attach`: regulate processes that run already.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use discnice_processes::fork;
use discnice_processes::tree::{Process, Tree};
use discnice_progress::control::{Summary, regulate};
use discnice_sys::procfs;
use discnice_watcher::Refusal;
use discnice_watcher::holding::HeldJob;
use rustix::process::{Pid, getpid};
use serde_json::json;

use super::attach_limits;
use super::limits::LimitArgs;
use super::polite::{Attended, PoliteArgs};
use crate::classes;
use crate::launch::Ended;
use crate::output::{self, counted, say};
use crate::schedule::ScheduleArgs;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  discnice attach --disk 5M 4711                 until Ctrl-C; shows rates meanwhile
  discnice attach --disk 5M --background 4711    returns; the limit holds until `discnice detach 4711`
  discnice attach --polite 4711                  suspends the process when its progress drops";

/// Limit running processes, with all their descendants, until they end
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Attach {
    #[command(flatten)]
    polite: PoliteArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    schedule: ScheduleArgs,

    /// Put the processes into this class, which shares its limits; created if it is missing
    #[arg(long, value_name = "NAME", value_parser = classes::name_parser(), conflicts_with = "polite")]
    class: Option<String>,

    /// Return at once; the daemon enforces the limits until `discnice detach`
    #[arg(long, conflicts_with = "polite")]
    background: bool,

    /// With --polite: print a summary at the end
    #[arg(long)]
    summary: bool,

    /// With --polite: print the summary as one JSON object: `lasted_s`, `suspended_s`, `suspensions`, `let_on` (how often it was
    /// not suspended because others waited for its locks), `elsewhere` (how often, because nothing on this machine slowed it
    /// down), `blind_looks` (how often a metric could not be read)
    #[arg(long)]
    json: bool,

    /// PIDs of the processes
    #[arg(value_name = "PID", required = true, allow_negative_numbers = true, value_parser = values::pid)]
    pids: Vec<i32>,
}

impl Attach {
    /// Regulates until the processes have ended.
    ///
    /// # Errors
    /// One line for people: which PID cannot be regulated and why.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let how = [self.limits.is_empty(), self.class.is_none(), self.schedule.is_empty()];
        if self.background && !self.schedule.is_empty() {
            bail!(
                "--background leaves nothing here that could look at the time; leave out one of both"
            );
        }
        self.check_summary()?;
        match (self.polite.wanted(), how.iter().all(|none| *none)) {
            (true, true) => self.be_polite(),
            (false, false) => attach_limits::run(&attach_limits::Wanted {
                pids: &self.pids,
                limits: &self.limits,
                schedule: &self.schedule,
                class: self.class.as_deref(),
                background: self.background,
            }),
            (true, false) => bail!("--polite needs no limits; give either --polite or limits"),
            (false, true) => bail!("say how: --disk 5M, --class NAME that has limits, or --polite"),
        }
    }

    /// Refuses the summary of a regulation by progress where there is none.
    fn check_summary(&self) -> anyhow::Result<()> {
        let unwanted = !self.polite.wanted();
        ensure!(!(unwanted && self.summary), "--summary goes with --polite only; leave it out");
        ensure!(!(unwanted && self.json), "--json goes with --polite only; leave it out");
        Ok(())
    }

    fn be_polite(self) -> anyhow::Result<ExitCode> {
        let roots = self.pids.iter().map(|&pid| root(pid)).collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(
            !Tree::new(&roots).contains(getpid()),
            "this command descends from one of the processes and would stop itself; start it elsewhere"
        );
        self.polite.check_running()?;
        let options = self.polite.options(roots, String::new())?;
        // A child regulates, which the terminal's ^Z does not reach, and which must not stand still while the job does.
        let ended = fork::kept(
            Duration::from_secs(3600),
            || ControlFlow::Continue(()),
            || {
                let summary = regulate(&options, &mut HeldJob::default(), &mut Attended);
                // It may be that no reader is left.
                let _ = self.summarise(&summary);
            },
        )?;
        Ok(ended.map_or(ExitCode::SUCCESS, |signal| Ended::Killed(signal).repeat()))
    }

    fn summarise(&self, summary: &Summary) -> anyhow::Result<()> {
        if self.json {
            output::json(&as_json(summary).to_string())?;
        } else if self.summary {
            let (stopped, lasted) = (summary.suspended, summary.lasted);
            let times = counted(summary.suspensions, "time", "times");
            say!("stopped {times}, for {stopped} of {lasted}")?;
        }
        Ok(())
    }
}

/// The process of this PID, if it may be stopped.
pub(super) fn root(pid: i32) -> anyhow::Result<Process> {
    if pid < 1 {
        bail!("{pid} is not a PID; give the PID of a running process");
    }
    let pid = Pid::from_raw(pid).context("0 is not a PID")?;
    let number = pid.as_raw_nonzero().get().unsigned_abs();
    let Some(found) = Process::find(number) else {
        ensure!(!procfs::is_executing(number), Refusal::Executing(number.cast_signed()));
        bail!("no process {number}; give a running one's PID");
    };
    rustix::process::test_kill_process(pid)
        .with_context(|| format!("process {number} may not be stopped by this user"))?;
    Ok(found)
}

fn as_json(summary: &Summary) -> serde_json::Value {
    json!({
        "lasted_s": summary.lasted.as_secs_f64(),
        "suspended_s": summary.suspended.as_secs_f64(),
        "suspensions": summary.suspensions,
        "let_on": summary.let_on,
        "elsewhere": summary.elsewhere,
        "blind_looks": summary.blind,
    })
}
