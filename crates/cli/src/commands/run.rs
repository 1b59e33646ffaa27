//! `discnice run`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use discnice_benice::beside;
use discnice_escape::Foreign;
use discnice_estimator::Totals;
use discnice_policy::{Limits, Resource};
use discnice_policyd::client::Answer;
use discnice_sys::time;
use discnice_units::{Bytes, Nanos, Rate};

use super::estimator::EstimatorArgs;
use super::limits::LimitArgs;
use super::polite::PoliteArgs;
use crate::classes::{self, Found, Origin};
use crate::config::Config;
use crate::launch::Ended;
use crate::mechanism::{Mechanism, Plan};
use crate::output::tell;
use crate::report::{Course, Draft, Record, Target};
use crate::{guest, launch, polite, program, watching};

/// Exit statuses of commands that could not be started, as env(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// A daemon that is started watches within this, or programs that wait for it go on without.
const ARRIVAL: Nanos = Nanos::from_millis(100);

/// Run a command, with all its children, within limits
#[derive(Debug, Args)]
pub struct Run {
    /// Put it into this class, with all others that are in it; made if need be
    #[arg(long, value_name = "NAME", value_parser = classes::name_parser())]
    class: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    estimator: EstimatorArgs,
    #[command(flatten)]
    polite: PoliteArgs,
    /// How the command is held
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    mechanism: Mechanism,
    /// Say at the end what was read, written and waited; DiscNice then stays as the parent
    #[arg(long)]
    summary: bool,
    /// Write at the end what was read, written and waited over time; DiscNice then stays as the
    /// parent
    #[arg(long, value_name = "FILE.html|.svg|.json")]
    report: Option<Target>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Executes the command in this process's place, so it returns only when that failed, or
    /// with `--summary`.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if self.command.is_empty() {
            bail!("no command given; put it behind `--`, as in: discnice run --disk 5M -- ls");
        }
        let limits = self.initial_limits()?;
        let draft = self.report.as_ref().map(Target::draft).transpose()?;
        let observed = self.summary || draft.is_some();
        let prepared = match self.is_limited() || observed {
            true => self.prepare(&limits).inspect_err(warn).ok(),
            false => None,
        };
        if !observed {
            return Ok(ExitCode::from(self.execute(prepared)));
        }
        let ended = match prepared {
            Some(made) => self.observe(made, draft)?,
            None => launch::supervise(|| self.execute(None), None)?,
        };
        Ok(ended.repeat())
    }

    /// The limits of a class that does not exist yet. One that gets no numbers is polite.
    fn initial_limits(&self) -> anyhow::Result<Limits> {
        let numbers = self.limits.has_threshold();
        if self.class.is_none() && (numbers || !self.is_limited()) {
            return self.limits.over(Limits::UNLIMITED);
        }
        let config = Config::load()?;
        let base = match self.class.as_ref().and_then(|name| config.class(name)) {
            Some(section) => section.over(Limits::UNLIMITED)?,
            None if numbers => Limits::UNLIMITED,
            None => match config.unnamed() {
                Some(section) => section.over(Limits::UNLIMITED)?,
                None => polite::limits(),
            },
        };
        self.limits.over(base)
    }

    /// Runs the command as a child, and tells at the end what it did.
    fn observe(&self, made: (Found, bool), draft: Option<Draft>) -> anyhow::Result<Ended> {
        let (found, _) = made;
        let mut course = Course::begin(found.class);
        let mut tick = || course.tick(found.class);
        let watch: Option<launch::Watch<'_>> = if draft.is_some() { Some(&mut tick) } else { None };
        let ended = launch::supervise(|| self.execute(Some(made)), watch)?;
        course.tick(found.class);
        if self.summary {
            summarise(&found, &course);
        }
        if let Some(draft) = draft {
            let record = Record::new(&self.command, &found, &course, ended);
            if let Err(error) = draft.finish(&record) {
                // The command has done its work, which its exit status must say.
                tell!("discnice: {error:#}");
            }
        }
        Ok(ended)
    }

    /// Whether the command enters a class. One that is regulated by its progress alone does not.
    fn is_limited(&self) -> bool {
        !self.limits.is_empty() || self.class.is_some() || !self.polite.wanted()
    }

    /// Executes the command; returns the exit status only if that failed.
    fn execute(&self, prepared: Option<(Found, bool)>) -> u8 {
        // Dropped by exec, or in the end of a command that cannot be executed.
        let _held_back = self.polite.wanted().then(|| self.start_regulator(prepared));
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let variables = prepared.and_then(|(found, _)| self.submit(&found, name));
        if prepared.is_some_and(|(found, _)| found.class.is_guest())
            && let Err(error) = guest::become_one()
        {
            tell!("discnice: not a guest in processor time: {error}");
        }
        let error = launch::execute(&self.command, variables.as_ref().map_or(&[], |both| both));
        if let Some((found, true)) = prepared {
            // A class that was made for a command that does not exist helps nobody.
            let _ = found.remove();
        }
        cannot_execute(Path::new(name), &error)
    }

    fn start_regulator(&self, prepared: Option<(Found, bool)>) -> Option<beside::HeldBack> {
        let started = self.polite.start_beside(prepared.map(|(found, _)| found));
        started.inspect_err(|error| tell!("discnice: not polite: {error:#}")).ok()
    }

    /// Makes this process, which is about to execute the command, regulated; returns what the
    /// command needs in its environment.
    fn submit(&self, found: &Found, name: &OsStr) -> Option<[(&'static str, OsString); 2]> {
        let member = launch::enlist(found, name);
        let found_program = program::find(name);
        if let (Some(member), Some(path)) = (member, &found_program) {
            launch::bring_in(found, member, path);
        }
        let kind = found_program.as_deref().map(program::kind);
        // Its dynamic linker would say on the command's standard error that it cannot load ours.
        let is_foreign = kind == Some(program::Kind::OtherMachine);
        let plan = self.mechanism.plan(kind.zip(found_program));
        self.have_watched(found, &plan);
        if let Plan::Escape(path, obstacle) = &plan {
            tell!("discnice: not limited: {} {obstacle}", Foreign::path(path));
        }
        let refused = plan.enter(found, member).err();
        if let Some(refused) = &refused {
            tell!("discnice: {}: {}: {refused}", plan.without_filter(), Foreign::word(name));
        }
        let variables = || launch::variables(found, member).inspect_err(warn).ok();
        if !is_foreign && (refused.is_some() || plan.preloads()) { variables() } else { None }
    }

    /// Has the class watched from outside, for what the other mechanisms cannot see. The command
    /// waits for that only if it has no other.
    fn have_watched(&self, found: &Found, plan: &Plan) {
        let disk = found.class.is_limited() && !plan.is_supervised();
        if !self.mechanism.watches() || !disk && guest::memory(found.class).is_none() {
            return;
        }
        if self.mechanism.is_strict() {
            found.class.watcher().be_strict();
        }
        found.class.watcher().await_until(time::now().plus(ARRIVAL).0);
        let answer = if *plan == Plan::Watched { Answer::Awaited } else { Answer::Unneeded };
        if let Err(error) = watching::watch(found, answer) {
            tell!("discnice: not watched from outside: {error}");
        }
    }

    /// The class with its limits; the second value tells whether it was made.
    fn prepare(&self, limits: &Limits) -> anyhow::Result<(Found, bool)> {
        let command = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let base = command.rsplit('/').next().unwrap_or_default();
        let name = self
            .class
            .clone()
            .unwrap_or_else(|| classes::automatic_name(base, discnice_sys::process::id()));
        let (found, origin) = classes::find_or_create(&name)?;
        let new = origin == Origin::New;
        if new {
            polite::prepare(limits).inspect_err(warn_of_board).ok();
            found.set_limits(limits);
        } else if !self.limits.is_empty() {
            super::class::change(&found, &self.limits)?;
        }
        self.estimator.apply(&found);
        Ok((found, new))
    }
}

/// The command runs all the same: a backup that is too fast beats no backup.
fn warn(error: &anyhow::Error) {
    tell!("discnice: not limited: {error:#}");
}

fn warn_of_board(error: &anyhow::Error) {
    tell!("discnice: limited always, not only while others are busy: {error:#}");
}

fn cannot_execute(name: &Path, error: &io::Error) -> u8 {
    tell!("discnice: cannot run {}: {error}", Foreign::path(name));
    let missing = error.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// One line on standard error, as time(1).
fn summarise(found: &Found, course: &Course) {
    let (total, seconds) = (course.total(), course.elapsed().as_secs_f64());
    let [read, written] = [Resource::Read, Resource::Write].map(|one| total.total(one));
    let rate = (read + written) as f64 / seconds.max(1e-3);
    tell!(
        "discnice: {seconds:.1} s, read {}, wrote {}: {} (limit {}), held {:.1} s",
        Bytes::new(read),
        Bytes::new(written),
        Rate::per_second(rate as u64),
        found.class.total().rate(),
        total.waited,
    );
    let unheld = found.class.watcher().unheld();
    if unheld > 0 {
        tell!(
            "discnice: of that {} escaped: it was counted, but nothing could hold it",
            Bytes::new(unheld)
        );
    }
    if found.class.predicts() {
        let Totals { predicted, account } = found.class.prediction();
        tell!("discnice: predicted {}, account {}", Bytes::new(predicted), Bytes::new(account));
    }
}
