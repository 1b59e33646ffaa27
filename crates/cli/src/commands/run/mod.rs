//! `discnice run`.

mod class;
mod observed;
mod start;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueHint};
use discnice_ledger::policy::Limits;

use super::estimator::EstimatorArgs;
use super::limits::LimitArgs;
use super::polite::PoliteArgs;
use crate::explanation::command::{ByProgress, Start};
use crate::launch::{self, Variables};
use crate::mechanism::MechanismChoice;
use crate::output::{self, tell};
use crate::report::Target;
use crate::schedule::ScheduleArgs;
use crate::strict::{OURS, Strictness};
use crate::{classes, explanation, inheritance, memory, own_policy, program};

/// Exit statuses of commands that could not be started, as env(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// How to give the command.
const COMMAND_PLACE: &str = "it goes after the options, as in: discnice run --disk 5M ls";
const EXAMPLES: &str = "\
Examples:
  discnice run tar -cf home.tar ~             gives way to all others that use the disk
  discnice run -d 5M rsync -a ~ /backup       at most 5 MiB/s of disk traffic
  discnice run -c nightly -d 5M restic ...    shares one limit with the other jobs of class nightly
  discnice run --when busy -d 2M make         2 MiB/s while others use the disk, unlimited otherwise
  discnice run --summary git gc               reports at the end what was moved and waited for";

/// Run a command, with all its children, within limits
///
/// Without a limit the command gives way: it is slowed down while other programs use its disks or the network.
/// The command begins at the first word that is not an option.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Run in this class, which shares its limits; created if it is missing
    #[arg(short, long, value_name = "NAME", value_parser = classes::name_parser())]
    class: Option<String>,
    /// Use the limits for one kind of job: backup, sync, build, scan, agent, download, or NAME if config.toml has
    /// [preset.NAME]; other options take precedence
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    preset: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    estimator: EstimatorArgs,
    #[command(flatten)]
    polite: PoliteArgs,
    /// How the limits are enforced
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Expert",
        hide_short_help = true
    )]
    mechanism: MechanismChoice,
    /// Refuse to start the command if a limit cannot be enforced. Programs that it starts, such as sudo, then cannot
    /// gain privileges, by which they would escape. Also set by DISCNICE_STRICT=1, or by `strict = true` in config.toml
    #[arg(long, help_heading = "Expert", hide_short_help = true)]
    strict: bool,
    /// Print at the end what was read and written, and how long it waited; DiscNice stays as the parent
    #[arg(short, long, help_heading = "Report")]
    summary: bool,
    /// Write at the end a report of traffic and waits over time; DiscNice stays as the parent
    #[arg(long, value_name = "FILE.html|.svg|.json", help_heading = "Report")]
    report: Option<Target>,
    /// Show rate, waits and time left on the terminal while it runs; DiscNice stays as the parent
    #[arg(long, help_heading = "Report")]
    progress: bool,
    /// Run nothing; show how the command would be limited, and what would escape
    #[arg(long, help_heading = "Report")]
    dry_run: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
    /// What else the command gets in its environment
    #[arg(skip)]
    besides: Variables,
}

impl Run {
    /// Executes the command in this process's place, so it returns only when that failed, or
    /// with `--summary`.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command.first() {
            None => bail!("no command given; {COMMAND_PLACE}"),
            // No program has that name, as env(1) says of it.
            Some(name) if name.is_empty() => {
                tell!("discnice: the command is empty; {COMMAND_PLACE}");
                return Ok(ExitCode::from(NOT_FOUND));
            }
            Some(_) => (),
        }
        inheritance::survive_limits_of_files();
        let strict = Strictness::of(self.strict)?;
        let limits = self.checked(strict)?;
        if self.dry_run {
            return self.explain(limits, strict);
        }
        if !strict.0 {
            memory::without_memory_execute(self.command.len());
        }
        self.start(&limits, strict)
    }

    /// Returns the limits that are to hold, if the options go together.
    fn checked(&self, strict: Strictness) -> anyhow::Result<Limits> {
        if strict.0 && self.mechanism == MechanismChoice::Preload {
            bail!(
                "--strict holds children, too, and --mechanism preload does not; leave out one of them"
            );
        }
        self.schedule.check(self.class.as_deref())?;
        let limits = self.permitted(self.initial_limits()?);
        own_policy::check_start(self.class.as_deref(), &limits)?;
        self.check_mechanism(&limits)?;
        if self.polite.wanted() {
            if self.limits.has_least() {
                bail!(
                    "--at-least promises a rate, and --polite suspends the command; leave out one of them"
                );
            }
            self.polite.config()?;
        }
        Ok(limits)
    }

    /// Starts the command, in its class and as what is to be told of it wants.
    fn start(self, limits: &Limits, strict: Strictness) -> anyhow::Result<ExitCode> {
        let draft = self.report.as_ref().map(Target::draft).transpose()?;
        let asked = self.summary || self.is_live() || draft.is_some() || !self.schedule.is_empty();
        let prepared = match self.is_limited() || asked {
            true => match self.prepare(limits, strict) {
                Ok(made) => Some(made),
                Err(unheld) => strict.mind(unheld).map(|()| None)?,
            },
            false => None,
        };
        // What holds it for good is to be told.
        let counts = prepared.is_some_and(|(found, _)| found.class.disk_total().is_some());
        let tap = self.polite.listen()?;
        if !asked && !counts && tap.is_none() {
            return Ok(ExitCode::from(self.execute(prepared, strict)));
        }
        let ended = match (prepared, tap) {
            (Some(made), tap) if asked || counts => self.observe(made, draft, strict, tap),
            (prepared, Some(tap)) => self.listen(prepared, strict, tap),
            (prepared, None) => launch::supervise(|| self.execute(prepared, strict), None),
        };
        match ended {
            Ok(ended) => Ok(ended.repeat()),
            // The command needs no second process; only what would be told at its end does.
            Err(error) if launch::is_alone(&error) => {
                tell!("discnice: no summary and no report, as no process can be made: {error}");
                Ok(ExitCode::from(self.execute(prepared, strict)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Executes the command in this process's place, in its class with these limits if that is possible, and in any case.
    pub(super) fn certainly(mut self, limits: &Limits, besides: (&'static str, OsString)) -> u8 {
        self.besides.push(besides);
        inheritance::survive_limits_of_files();
        let lenient = Strictness(false);
        let prepared =
            self.prepare(limits, lenient).inspect_err(|unheld| tell!("discnice: {unheld}"));
        let prepared = prepared.ok().inspect(|(found, _)| found.set_limits(limits));
        self.execute(prepared, lenient)
    }

    /// Refuses a mechanism by which children cannot be told apart.
    fn check_mechanism(&self, limits: &Limits) -> anyhow::Result<()> {
        if limits.per_child()
            && matches!(self.mechanism, MechanismChoice::Preload | MechanismChoice::Seccomp)
        {
            bail!(
                "--per-child holds the command and its children from outside; leave out --mechanism, or say freeze"
            );
        }
        Ok(())
    }

    /// Tells how the command would be held; the exit status is the one of a command that cannot be started.
    fn explain(&self, limits: Limits, strict: Strictness) -> anyhow::Result<ExitCode> {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let found = self.class.as_ref().and_then(|name| classes::find(name));
        let limits = match &found {
            Some(found) => self.limits.over(found.class.limits())?,
            None => limits,
        };
        let class = match (&self.class, found) {
            (Some(name), Some(_)) => name.clone(),
            (Some(name), None) => format!("{name} (new)"),
            (None, _) if self.is_limited() => "one of its own".into(),
            (None, _) => "none: its progress alone regulates it (--polite)".into(),
        };
        let by_progress = match self.polite.wanted() {
            true if self.is_limited() => ByProgress::Too,
            true => ByProgress::Alone,
            false => ByProgress::No,
        };
        let (mechanism, when) = (self.mechanism, self.schedule.lines());
        let start = Start { name, class, limits, mechanism, strict, when, by_progress };
        let explained = explanation::command::explain(start);
        super::explain::print(&explained, false)?;
        let status = match program::find(name) {
            None => NOT_FOUND,
            Some(path) if !path.exists() => NOT_FOUND,
            Some(path) if program::fault(&path).is_some() => NOT_EXECUTABLE,
            Some(_) if strict.0 && explained.held_by.is_empty() => OURS,
            Some(_) => 0,
        };
        Ok(ExitCode::from(status))
    }

    /// Whether a line is shown while it runs.
    fn is_live(&self) -> bool {
        self.progress && output::is_watched()
    }

    /// Whether the command enters a class. One that is regulated by its progress alone does not.
    fn is_limited(&self) -> bool {
        let limited = !self.limits.is_empty() || !self.schedule.is_empty() || self.preset.is_some();
        limited || self.class.is_some() || !self.polite.wanted()
    }
}
