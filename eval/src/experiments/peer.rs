//! What a user could do to keep a background out of the way: nothing, a priority, rsync's own
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
use crate::removal::unless_missing;

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
        self.schedule(lab, SCHEDULER)?;
        if self == Self::Alone {
            return Ok(None);
        }
        let target = lab.memory().join("backup");
        unless_missing(fs::remove_dir_all(&target), &target)?;
        let mut rsync = lab.command("rsync");
        if let Self::OwnLimit(rate) = self {
            // rsync counts in units of 1024 bytes.
            rsync.arg(format!("--bwlimit={}", rate * 1_000_000 / 1024));
        }
        rsync.args(["--recursive", "--whole-file"]).arg(source).arg(&target);
        self.begin(lab, self.wrap(lab, &rsync)?).map(Some)
    }

    /// Sets the scheduler of the disk: the one that this case names, or `usual`.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn schedule(self, lab: &Lab, usual: &str) -> anyhow::Result<()> {
        let scheduler = if let Self::Idle(scheduler) = self { scheduler } else { usual };
        disk::set_scheduler(lab.device()?, scheduler)
    }

    /// The command that runs `command` in this way.
    ///
    /// # Errors
    /// `discnice` cannot limit a command.
    pub fn wrap(self, lab: &Lab, command: &Command) -> anyhow::Result<Command> {
        let limited = |options: &[&str]| lab.limited(options, command);
        Ok(match self {
            Self::Alone | Self::Plain | Self::OwnLimit(_) | Self::Cgroup(_) => {
                prefixed(lab, &["env"], command)
            }
            Self::Nice => prefixed(lab, &["nice", "-n", "19"], command),
            Self::Idle(_) => prefixed(lab, &["ionice", "-c", "3"], command),
            Self::CpuLimit(percent) => {
                prefixed(lab, &["cpulimit", "-f", "-l", &percent.to_string(), "--"], command)
            }
            Self::Discnice(rate) => limited(&["--disk", &format!("{rate}MB")])?,
            Self::Busy(rate) => limited(&["--disk", &format!("{rate}MB"), "--when", "busy"])?,
            Self::Polite => limited(&[])?,
            // Its targets are not known yet, and a short run cannot wait for the end of probation.
            Self::Progress => limited(&["--polite", "--no-probation"])?,
        })
    }

    /// Starts a wrapped command, within the control group of this case if it has one.
    ///
    /// # Errors
    /// It cannot be started, or the kernel refuses the group.
    pub fn begin(self, lab: &Lab, mut wrapped: Command) -> anyhow::Result<Background> {
        if let Self::Cgroup(rate) = self {
            let limit = Limited::new(lab.device()?, Rate::per_second(rate * 1_000_000))?;
            return start_in(lab, &wrapped, limit);
        }
        Ok(Background { job: Job::start(&mut wrapped)?, limit: None })
    }
}

/// `words`, then `command` as their arguments.
fn prefixed(lab: &Lab, words: &[&str], command: &Command) -> Command {
    let mut prefixed = lab.command(words[0]);
    prefixed.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    prefixed
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
