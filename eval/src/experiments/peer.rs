//! What a user could do to keep a background rsync out of the way: nothing, a priority, rsync's own
//! limit, the kernel's limit, or DiscNice.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use discnice_units::Rate;

use crate::disk;
use crate::frame::requirement::Requirement;
use crate::lab::Lab;
use crate::lab::cgroup::{self, Limited};
use crate::lab::job::Job;

/// One way to run the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// No background at all: the base of every comparison.
    Alone,
    /// Nothing is done.
    Plain,
    /// nice(1) with the lowest CPU priority.
    Nice,
    /// ionice(1) class idle, under the named I/O scheduler.
    Idle(&'static str),
    /// `rsync --bwlimit`, in MB/s.
    OwnLimit(u64),
    /// A control group's limit, in MB/s.
    Cgroup(u64),
    /// cpulimit(1), in % of a processor.
    CpuLimit(u64),
    /// `discnice run --disk`, in MB/s.
    Discnice(u64),
    /// `discnice run --disk --when busy`, in MB/s.
    Busy(u64),
    /// `discnice run` with no numbers.
    Polite,
    /// `discnice run --polite`: regulated by its own progress.
    Progress,
}

/// The scheduler of all cases that do not name one.
const SCHEDULER: &str = "mq-deadline";

impl Peer {
    /// Name of the case in records.
    #[must_use]
    pub fn case(self) -> String {
        match self {
            Self::Alone => "alone".into(),
            Self::Plain => "rsync".into(),
            Self::Nice => "nice -n 19".into(),
            Self::Idle(scheduler) => format!("ionice -c3, {scheduler}"),
            Self::OwnLimit(rate) => format!("rsync --bwlimit {rate} MB/s"),
            Self::Cgroup(rate) => format!("control group {rate} MB/s"),
            Self::CpuLimit(percent) => format!("cpulimit {percent} %"),
            Self::Discnice(rate) => format!("discnice {rate} MB/s"),
            Self::Busy(rate) => format!("discnice {rate} MB/s when busy"),
            Self::Polite => "discnice, polite".into(),
            Self::Progress => "discnice --polite".into(),
        }
    }

    /// Whether the foreground is expected to suffer beside it.
    #[must_use]
    pub const fn is_slow(self) -> bool {
        matches!(self, Self::Plain | Self::Nice | Self::Idle(_) | Self::CpuLimit(_))
    }

    /// Why it cannot be had on this machine; `None` if it can.
    #[must_use]
    pub fn lack(self, lab: &Lab) -> Option<String> {
        match self {
            Self::Idle(scheduler) => {
                let known = lab.device().and_then(disk::schedulers).unwrap_or_default();
                (!known.iter().any(|name| name == scheduler))
                    .then(|| format!("this kernel has no I/O scheduler {scheduler}"))
            }
            Self::Cgroup(_) => cgroup::lack(),
            Self::CpuLimit(_) => Requirement::Program("cpulimit").lack(&lab.site),
            Self::Discnice(_) | Self::Busy(_) | Self::Progress => {
                Requirement::Discnice.lack(&lab.site)
            }
            Self::Polite => lab.site.polite_lack(),
            Self::Alone | Self::Plain | Self::Nice | Self::OwnLimit(_) => None,
        }
    }

    /// Starts rsync in this way, from `source` on the disk to memory; `None` for [`Peer::Alone`].
    ///
    /// # Errors
    /// A program cannot be started, or the kernel refuses a setting.
    pub fn start(self, lab: &Lab, source: &Path) -> anyhow::Result<Option<Background>> {
        let scheduler = if let Self::Idle(scheduler) = self { scheduler } else { SCHEDULER };
        disk::set_scheduler(lab.device()?, scheduler)?;
        let target = lab.memory().join("backup");
        fs::remove_dir_all(&target).or_else(ignore_missing).context("cannot empty the backup")?;
        let mut command = match self {
            Self::Alone => return Ok(None),
            Self::Plain | Self::OwnLimit(_) | Self::Cgroup(_) => lab.command("rsync"),
            Self::Nice => prefixed(lab, &["nice", "-n", "19", "rsync"]),
            Self::Idle(_) => prefixed(lab, &["ionice", "-c", "3", "rsync"]),
            Self::CpuLimit(percent) => {
                let percent = percent.to_string();
                prefixed(lab, &["cpulimit", "-f", "-l", &percent, "--", "rsync"])
            }
            Self::Discnice(rate) => limited(lab, &["--disk", &format!("{rate}MB")])?,
            Self::Busy(rate) => limited(lab, &["--disk", &format!("{rate}MB"), "--when", "busy"])?,
            Self::Polite => limited(lab, &[])?,
            // Its targets are not known yet, and a short run cannot wait for the end of probation.
            Self::Progress => limited(lab, &["--polite", "--no-probation"])?,
        };
        if let Self::OwnLimit(rate) = self {
            // rsync counts in units of 1024 bytes.
            command.arg(format!("--bwlimit={}", rate * 1_000_000 / 1024));
        }
        command.args(["--recursive", "--whole-file"]).arg(source).arg(&target);
        if let Self::Cgroup(rate) = self {
            let limit = Limited::new(lab.device()?, Rate::per_second(rate * 1_000_000))?;
            return start_in(lab, &command, limit).map(Some);
        }
        Ok(Some(Background { job: Job::start(&mut command)?, limit: None }))
    }
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn prefixed(lab: &Lab, words: &[&str]) -> Command {
    let mut command = lab.command(words[0]);
    command.args(&words[1..]);
    command
}

fn limited(lab: &Lab, options: &[&str]) -> anyhow::Result<Command> {
    lab.limited(options, &lab.command("rsync"))
}

/// Starts `command` behind a shell that waits until it is in the control group.
fn start_in(lab: &Lab, command: &Command, limit: Limited) -> anyhow::Result<Background> {
    let mut shell = lab.command("sh");
    shell.args(["-c", "read go && exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args()).stdin(Stdio::piped());
    let mut job = Job::start(&mut shell)?;
    limit.add(job.group())?;
    let mut input = job.take_input().context("the shell has no input")?;
    std::io::Write::write_all(&mut input, b"go\n").context("the shell does not listen")?;
    Ok(Background { job, limit: Some(limit) })
}

/// A running background; its processes end before its control group goes.
pub struct Background {
    job: Job,
    limit: Option<Limited>,
}

impl Background {
    /// The process group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.job.group()
    }

    /// The command as typed.
    #[must_use]
    pub fn words(&self) -> String {
        match self.limit {
            None => self.job.words().to_owned(),
            Some(_) => format!("in a control group with a limit: {}", self.job.words()),
        }
    }

    /// Ends it; returns whether it was still running.
    ///
    /// # Errors
    /// It had failed before.
    pub fn end(self) -> anyhow::Result<bool> {
        self.job.end()
    }
}
