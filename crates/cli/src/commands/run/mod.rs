//! `discnice run`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueHint};
use discnice_benice::beside::HeldBack;
use discnice_benice::tree::Process;
use discnice_escape::Foreign;
use discnice_policy::Limits;
use discnice_policyd::client::Answer;
use discnice_sys::{process, time};
use discnice_units::Nanos;

use super::estimator::EstimatorArgs;
use super::limits::LimitArgs;
use super::polite::PoliteArgs;
use super::summary;
use crate::classes::{self, Found, Origin};
use crate::config::{self, Config};
use crate::escapes::Escapes;
use crate::holding::{Holding, Unheld};
use crate::launch::{Ended, Variables};
use crate::live::Live;
use crate::mechanism::{Mechanism, Plan};
use crate::output::{self, tell};
use crate::program::{self, Kind};
use crate::report::{Course, Draft, LOOKS, Record, Target, Waited};
use crate::schedule::{Job, ScheduleArgs};
use crate::strict::{HINT, OURS, Refusal, Strictness};
use crate::terminal::Tap;
use crate::used_up::Teller;
use crate::{
    explanation, fleet, guest, inheritance, launch, library, memory, own_policy, polite, presets,
    stack, watching,
};

/// Exit statuses of commands that could not be started, as env(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// A daemon that is started watches within this, also on a machine with much to do, or programs that wait for it go on
/// without.
const ARRIVAL: Nanos = Nanos::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  discnice run tar -cf home.tar ~             give way to all others that use the disk
  discnice run -d 5M rsync -a ~ /backup       at most 5 MiB/s of disk traffic
  discnice run -c nightly -d 5M restic ...    shares its limit with all others of class nightly
  discnice run --when busy -d 2M make         2 MiB/s while others use the disk, unlimited otherwise
  discnice run --summary git gc               says at the end what it moved and how long it waited";

/// Run a command, with all its children, within limits
///
/// Without a limit the command gives way: it is held while others use the disks that it uses, or the network.
/// Everything from the first word that is not an option is the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Run it in this class, sharing its limits; made if it does not exist
    #[arg(short, long, value_name = "NAME", value_parser = classes::name_parser())]
    class: Option<String>,
    /// Limits for a kind of job: backup, sync, build, scan, agent, download, or [preset.NAME] of config.toml; other options
    /// take precedence
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
    /// How the command is held
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Expert",
        hide_short_help = true
    )]
    mechanism: Mechanism,
    /// Do not start the command if a limit cannot hold for it, and let it and its children gain no rights by
    /// which they would escape; also by DISCNICE_STRICT=1, or `strict = true` in config.toml
    #[arg(long, help_heading = "Expert", hide_short_help = true)]
    strict: bool,
    /// Say at the end what was read, written and waited; DiscNice then stays as the parent
    #[arg(short, long, help_heading = "Report")]
    summary: bool,
    /// Write at the end what was read, written and waited over time; DiscNice then stays as the
    /// parent
    #[arg(long, value_name = "FILE.html|.svg|.json", help_heading = "Report")]
    report: Option<Target>,
    /// Show on a terminal, while it runs, its rate, what it waits for and the time left; DiscNice then stays as the parent
    #[arg(long, help_heading = "Report")]
    progress: bool,
    /// Only tell what would hold the command, and what would escape
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
        if self.command.is_empty() {
            bail!(
                "no command given; it stands behind the options, as in: discnice run --disk 5M ls"
            );
        }
        inheritance::survive_limits_of_files();
        let strict = Strictness::of(self.strict)?;
        if strict.0 && self.mechanism == Mechanism::Preload {
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
        if self.dry_run {
            return self.explain(limits, strict);
        }
        if !strict.0 {
            memory::without_memory_execute(self.command.len());
        }
        let draft = self.report.as_ref().map(Target::draft).transpose()?;
        let asked = self.summary || self.is_live() || draft.is_some() || !self.schedule.is_empty();
        let prepared = match self.is_limited() || asked {
            true => match self.prepare(&limits, strict) {
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
        if limits.per_child() && matches!(self.mechanism, Mechanism::Preload | Mechanism::Seccomp) {
            bail!(
                "--per-child holds the command and its children from outside; leave out --mechanism, or say freeze"
            );
        }
        Ok(())
    }

    /// The limits of a class that does not exist yet. One that gets no numbers is polite.
    fn initial_limits(&self) -> anyhow::Result<Limits> {
        if let Some(preset) = &self.preset {
            return self.limits.over(presets::limits(&Config::load()?, preset)?);
        }
        let numbers = self.limits.has_threshold();
        if self.class.is_none() && (numbers || self.limits.is_empty() && self.polite.wanted()) {
            return self.limits.over(Limits::UNLIMITED);
        }
        let config = Config::load()?;
        let section = self.class.as_ref().map(|name| config.class(name)).transpose()?.flatten();
        let base = match section {
            Some(limits) => limits,
            None if numbers => Limits::UNLIMITED,
            None => self.limits.with_room(config.unnamed()?.unwrap_or_else(polite::limits))?,
        };
        self.limits.over(base)
    }

    /// Those limits as far as the site permits them for the class.
    fn permitted(&self, limits: Limits) -> Limits {
        if !self.is_limited() {
            return limits;
        }
        // No name of a class that is made for this command stands in a configuration.
        config::permitted(self.class.as_deref().unwrap_or_default(), limits)
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
        let mechanism = self.mechanism;
        let start = explanation::command::Start { name, class, limits, mechanism, strict };
        let explained = explanation::command::explain(&start);
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

    /// Runs the command as a child, and listens to what it prints.
    fn listen(
        &self,
        prepared: Option<(Found, bool)>,
        strict: Strictness,
        tap: Tap,
    ) -> io::Result<Ended> {
        let mut look = || tap.look();
        let child = || {
            tap.enter();
            self.execute(prepared, strict)
        };
        let ended = launch::supervise(child, Some(&mut look));
        tap.finish();
        ended
    }

    /// Runs the command as a child, and tells at the end what it did.
    fn observe(
        &self,
        made: (Found, bool),
        draft: Option<Draft>,
        strict: Strictness,
        tap: Option<Tap>,
    ) -> io::Result<Ended> {
        let (found, _) = made;
        let mut course = Course::begin(found.class);
        let mut escapes = Escapes::default();
        let mut waited = Waited::begin(&found);
        let (mut looks, mut used_up) = (0u32, Teller::default());
        let mut live = self.is_live().then(|| Live::begin(&found));
        let watched = self.summary || live.is_some() || draft.is_some();
        let own = self.class.is_some() || self.limits.has_threshold();
        let (mut schedule, mut job) = (self.schedule.begin(&found, own), None);
        let mut look = || {
            tap.iter().for_each(Tap::look);
            used_up.look(&found);
            if let Some(job) = job.get_or_insert_with(|| child_in(found)) {
                schedule.look(job);
            }
            if !watched {
                return;
            }
            waited.look(&found);
            if let (Some(live), Some(job)) = (&mut live, job.as_ref().and_then(Option::as_ref)) {
                live.look(job, &waited);
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                escapes.look(&found);
                if draft.is_some() {
                    course.tick(found.class);
                }
            }
        };
        let child = || {
            tap.iter().for_each(Tap::enter);
            self.execute(Some(made), strict)
        };
        let ended = launch::supervise(child, Some(&mut look))?;
        tap.into_iter().for_each(Tap::finish);
        output::show_live("");
        schedule.end(&found);
        course.tick(found.class);
        let escaped = escapes.list();
        if self.summary {
            summary::tell_all(&found, &course, &waited, &escaped);
        }
        if let Some(draft) = draft {
            let record = Record::new(&self.command, &found, &course, &waited, ended, escaped);
            if let Err(error) = draft.finish(&record) {
                // The command has done its work, which its exit status must say.
                tell!("discnice: {error:#}");
            }
        }
        Ok(ended)
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

    /// Executes the command; returns the exit status only if that failed, or was refused.
    fn execute(&self, prepared: Option<(Found, bool)>, strict: Strictness) -> u8 {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let status = match self.hold(prepared, name, strict) {
            Err(refusal) => {
                tell!("discnice: {refusal}");
                OURS
            }
            // What is held back is dropped by exec, or in the end of a command that cannot be executed.
            Ok((variables, _held_back)) => {
                let variables = [variables.unwrap_or_default(), self.besides.clone()].concat();
                cannot_execute(Path::new(name), &launch::execute(&self.command, &variables))
            }
        };
        if let Some((found, true)) = prepared {
            // A class that was made for a command that does not exist is of no use.
            let _ = found.remove();
        }
        status
    }

    /// Makes everything ready that is to hold the command.
    fn hold(
        &self,
        prepared: Option<(Found, bool)>,
        name: &OsStr,
        strict: Strictness,
    ) -> Result<(Option<Variables>, Option<HeldBack>), Refusal> {
        let found = prepared.map(|(found, _)| found);
        let started = self.polite.wanted().then(|| self.polite.start_beside(found));
        let held_back = strict.have(started.transpose().map_err(Unheld::NotPolite))?.flatten();
        let variables = match &found {
            Some(found) => self.submit(found, name, strict)?,
            None => None,
        };
        if let Some(found) = found.filter(|found| found.class.is_guest()) {
            strict.have(guest::become_one(found.class).map_err(Unheld::NoGuest))?;
        }
        Ok((variables, held_back))
    }

    /// Makes this process, which is about to execute the command, regulated; returns what the
    /// command needs in its environment.
    fn submit(
        &self,
        found: &Found,
        name: &OsStr,
        strict: Strictness,
    ) -> Result<Option<Variables>, Refusal> {
        let apart = found.class.is_per_child();
        let Holding { plan, program, unheld } = Holding::of(self.mechanism, name).apart(apart);
        let has_library = !matches!(unheld, Some(Unheld::NoLibrary(_)));
        unheld.map_or(Ok(()), |unheld| strict.mind(unheld))?;
        // Before this process is a member: the copy that may be made is no job's.
        let preload = has_library.then(library::to_preload);
        let member = launch::enlist(found, name);
        // Before anything is read at what the class may move.
        if let Some(problem) = fleet::await_lease(found) {
            tell!("discnice: {problem}");
        }
        if let (Some(member), Some(path)) = (member, &program) {
            launch::bring_in(found, member, path);
        }
        if let Some(member) = member.filter(|_| apart) {
            launch::leave_to_watcher(found, member);
        }
        let kind = program.as_deref().map_or(Kind::Unknown, program::kind);
        self.have_watched(found, &plan, strict)?;
        if strict.0 {
            strict.have(launch::bar_from_rights().map_err(Unheld::GainsRights))?;
        }
        let refused = plan.enter(found, member).err();
        let followed = found.class.watcher().follows_births(time::now().0, process::exists);
        // What finds its way into children by itself would put them into this class.
        let carries =
            !apart && plan.carries(followed) || refused.is_some() && stack::fits_preloading();
        if let Some(refused) = refused {
            strict.mind(Unheld::NoFilter(
                plan.without_filter(),
                name.into(),
                refused.to_string(),
            ))?;
        }
        let Some(preload) = preload.filter(|_| carries) else { return Ok(None) };
        let variables = preload.map(|path| launch::variables(found, member, &path));
        let variables = variables.map_err(Unheld::NoLibrary);
        Ok(strict.have(variables)?.map(|both| launch::for_program(kind, both)))
    }

    /// Has the class watched from outside, for what the other mechanisms cannot see. The command
    /// waits for that only if it has no other, or must have it.
    fn have_watched(&self, found: &Found, plan: &Plan, strict: Strictness) -> Result<(), Refusal> {
        // One that gives way may be free at the moment, and its watcher sees whether others are busy.
        let steered = found.class.fleet().is_joined() || own_policy::is_own(&found.class.limits());
        let always = found.class.yields() || steered;
        let disk = always || found.class.is_limited() && !plan.is_supervised();
        let paused = found.class.is_paused();
        let watched = self.mechanism.watches() && (disk || guest::memory(found.class).is_some());
        if !watched && !paused {
            return Ok(());
        }
        if self.mechanism.is_strict() {
            found.class.watcher().be_strict();
        }
        found.class.watcher().await_until(time::now().plus(ARRIVAL).0);
        let awaited = *plan == Plan::Watched || strict.0 || paused;
        let answer = if awaited { Answer::Awaited } else { Answer::Unneeded };
        strict.have(watching::watch(found, answer).map_err(Unheld::NotWatched)).map(drop)
    }

    /// Changes a class that is there already: by the preset, and then by the options.
    fn change(&self, found: &Found) -> anyhow::Result<()> {
        let before = found.class.limits();
        let before = match &self.preset {
            Some(preset) => presets::over(&Config::load()?, preset, before)?,
            None => before,
        };
        super::class::apply(found, self.limits.over(before)?)
    }

    /// The class with its limits; the second value tells whether it was made.
    fn prepare(&self, limits: &Limits, strict: Strictness) -> Result<(Found, bool), Unheld> {
        // The registry, the board, the library's copy and policyd all lie in it.
        discnice_paths::keep_runtime();
        let command = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let base = command.rsplit('/').next().unwrap_or_default();
        let name = self
            .class
            .clone()
            .unwrap_or_else(|| classes::automatic_name(base, discnice_sys::process::id()));
        let (found, origin) = classes::find_or_create(&name).map_err(Unheld::NoClass)?;
        let new = origin == Origin::New;
        if new {
            if self.class.is_some() && output::is_watched() {
                tell_new(&name);
            }
            if let Err(error) = polite::prepare(limits) {
                let unheld = Unheld::NoBoard(error);
                if strict.0 {
                    let _ = found.remove();
                    return Err(unheld);
                }
                tell!("discnice: {unheld}{HINT}");
            }
            found.set_limits(limits);
        } else if !self.limits.is_empty() || self.preset.is_some() {
            let is_unused = found.class.living(process::exists).next().is_none();
            if is_unused && self.limits.has_new_total() {
                // The jobs before are over.
                found.class.count_anew();
            }
            self.change(&found).map_err(Unheld::NoClass)?;
        }
        if self.class.is_some() {
            let config = Config::load().map_err(Unheld::NoClass)?;
            fleet::follow(&found, &config);
        }
        self.estimator.apply(&found);
        if found.class.is_paused() && output::is_watched() {
            tell!("discnice: class {name} is paused; `discnice resume {name}` lets it go on");
        }
        Ok((found, new))
    }
}

/// The job that the child of this process is.
fn child_in(found: Found) -> Option<Job> {
    let root = Process::find(launch::child()?)?;
    Some(Job { found, roots: vec![root] })
}

/// Tells of a class that is made, as its name may have a typing error.
fn tell_new(name: &str) {
    match super::class::similar(name) {
        Some(similar) => tell!("discnice: new class {name}; there is also {similar}"),
        None => tell!("discnice: new class {name}"),
    }
}

fn cannot_execute(name: &Path, error: &io::Error) -> u8 {
    let why = program::trouble(name, error);
    tell!("discnice: cannot run {}: {why}", Foreign::path(name));
    let missing = error.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { NOT_EXECUTABLE }
}
