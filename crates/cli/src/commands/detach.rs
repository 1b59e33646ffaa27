//! `discnice detach`: processes that were attached go on without limits.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use clap::Args;
use discnice_ledger::State;
use discnice_processes::tree::Process;
use discnice_sys::procfs;
use discnice_watcher::Refusal;
use discnice_watcher::holding::let_go_of_abandoned;
use discnice_watcher::process::tracer;

use crate::classes::{self, MappedClass};
use crate::running::Running;
use crate::{joining, values};

/// A process that is let go runs within this.
const PROMPT: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  discnice detach 4711      the process and its descendants go on without limits";

/// Lift the limits of attached processes and their descendants
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Detach {
    /// PIDs of the processes
    #[arg(value_name = "PID", required = true, allow_negative_numbers = true, value_parser = values::pid)]
    pids: Vec<i32>,
}

impl Detach {
    /// Lets them go; when this returns they run.
    ///
    /// # Errors
    /// One line for people: which PID is not attached. Nothing was changed then.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let found = classes::all()?;
        let_go_of_abandoned();
        let pids = self.pids.iter().map(|&pid| attached(&found, pid));
        for (class, process) in pids.collect::<anyhow::Result<Vec<_>>>()? {
            joining::release_tree(class, &[process]);
            wait_for_release(process);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The watcher finds the change at its next look.
fn wait_for_release(process: Process) {
    let deadline = Instant::now() + PROMPT;
    while tracer(process.id().cast_signed()).is_some() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The class that an attached process is in.
fn attached(classes: &[MappedClass], pid: i32) -> anyhow::Result<(&MappedClass, Process)> {
    ensure!(pid > 0, "{pid} is not a PID; give the PID of an attached process");
    let id = pid.unsigned_abs();
    let Some(process) = Process::find(id) else {
        ensure!(!procfs::is_executing(id), Refusal::Executing(pid));
        bail!("no process {pid}; give the PID of an attached one");
    };
    for found in classes {
        match Running::listed(found, id) {
            Some(running) if running.member.state() == State::Outside => {
                return Ok((found, process));
            }
            Some(_) => bail!(
                "process {pid} was started with limits (class {}); `discnice class set` changes them",
                found.name()
            ),
            None => {}
        }
    }
    bail!("process {pid} is not attached; see `discnice status`")
}
