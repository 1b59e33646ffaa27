//! Regulation by progress, as `attach` and `run` share it.

use std::path::Path;

use anyhow::{anyhow, ensure};
use clap::Args;
use discnice_escape::Foreign;
use discnice_ledger::policy::{Limits, Resource};
use discnice_processes::tree::{Process, Tree};
use discnice_progress::control::{Metric, Outside, Phases, RegulatorOptions, launch, regulate};
use discnice_progress::model::{Config, Setting, settings};
use discnice_progress::testpoint::{paths, store};
use discnice_units::Nanos;
use discnice_watcher::holding::HeldJob;

use crate::classes::MappedClass;
use crate::config;
use crate::output::tell;
use crate::terminal::Tap;

/// How a job is regulated by its progress.
#[derive(Debug, Clone, Default, Args)]
pub struct PoliteArgs {
    /// Watch the job's progress, and suspend the job while others slow it down
    #[arg(long, help_heading = "When")]
    polite: bool,

    /// What counts as progress: cpu, bytes, read, written, operations, faults, position:PATH,
    /// lines:PATH, match:PATH:REGEX, terminal (the progress bars that the command shows), progress:PATH (those in
    /// a log) or openmetrics:SOURCE#NAME; may be repeated [default: cpu and bytes]
    #[arg(
        long = "metric",
        value_name = "SPEC",
        requires = "polite",
        help_heading = "When",
        hide_short_help = true
    )]
    metrics: Vec<Metric>,

    /// How to tell which phase the job is in; each phase has targets of its own. SPEC is file:PATH (its first line),
    /// match:PATH:REGEX (the last match in a log), or moving (which metrics rise). A metric written PHASE@SPEC counts
    /// in that phase only
    #[arg(
        long = "phase",
        value_name = "SPEC",
        requires = "polite",
        help_heading = "When",
        hide_short_help = true
    )]
    phases: Option<Phases>,

    /// Use the plain back-off and calibration of the MS Manners paper, for comparison
    #[arg(long, requires = "polite", help_heading = "Expert", hide_short_help = true)]
    paper: bool,

    //= ms-manners/9.1-no-probation
    /// Priority relative to other polite jobs, which run one at a time: a job with 200 gets twice the time of one
    /// with 100; from 1 to 10000 [default: the `--weight` of its class, which `class set` changes, else 100]
    #[arg(
        long,
        value_name = "N",
        requires = "polite",
        value_parser = clap::value_parser!(u32).range(1..=10_000),
        help_heading = "When",
        hide_short_help = true
    )]
    priority: Option<u32>,

    /// Set a parameter of the regulation, as the section `polite` of config.toml does: alpha, beta,
    /// false-stop-hours, average-over, hung (seconds) or probation (seconds); may be repeated
    #[arg(
        long,
        value_name = "NAME=NUMBER",
        requires = "polite",
        help_heading = "Expert",
        hide_short_help = true
    )]
    tune: Vec<Setting>,

    //= ms-manners/9.1-no-probation
    /// Skip the probation of a job without known targets
    #[arg(long, requires = "polite", help_heading = "Expert", hide_short_help = true)]
    no_probation: bool,
}

impl PoliteArgs {
    //= ms-manners/4-designate
    /// Whether `--polite` was given.
    pub fn wanted(&self) -> bool {
        self.polite
    }

    /// The terminal of a command that is about to be started, if its progress is to be read there.
    ///
    /// # Errors
    /// There is none.
    pub fn listen(&self) -> anyhow::Result<Option<Tap>> {
        self.metrics.iter().any(Metric::needs_terminal).then(Tap::begin).transpose()
    }

    /// Refuses metrics that only a command has that is about to be started.
    ///
    /// # Errors
    /// One of them was given.
    pub fn check_running(&self) -> anyhow::Result<()> {
        ensure!(
            !self.metrics.iter().any(Metric::needs_terminal),
            "--metric terminal: what a running process prints cannot be read; start it by `discnice run`, or say --metric progress:PATH of its log"
        );
        Ok(())
    }

    /// The parameters of the regulation: the configuration's, and over them the options'.
    ///
    /// # Errors
    /// Parameters that make no stable system; a configuration that cannot be understood; metrics of phases of which
    /// nothing tells.
    pub fn config(&self) -> anyhow::Result<Config> {
        Phases::check(self.phases.as_ref(), &self.metrics)
            .map_err(|why| anyhow!("--metric: {why}"))?;
        let mut config = if self.paper { Config::paper() } else { Config::default() };
        let mut wanted: Vec<_> = config::ConfigFiles::load()?.progress().collect();
        wanted.extend(&self.tune);
        settings::apply(&mut config, &wanted).map_err(|error| anyhow!("--polite: {error}"))?;
        if self.no_probation {
            config.probation = Nanos(0);
        }
        Ok(config)
    }

    /// What the regulator of `roots` needs to know.
    ///
    /// # Errors
    /// A metric's relative path in a directory that is gone.
    pub fn options(
        &self,
        roots: Vec<Process>,
        circumstances: String,
    ) -> anyhow::Result<RegulatorOptions> {
        let config = self.config()?;
        let metrics = self.metrics.iter().cloned().map(Metric::absolute);
        let mut metrics = metrics.collect::<Result<Vec<_>, _>>()?;
        if metrics.is_empty() {
            metrics = Metric::default_set();
        }
        let phases = self.phases.clone().map(Phases::absolute).transpose()?;
        Ok(RegulatorOptions {
            roots,
            metrics,
            phases,
            circumstances,
            config,
            targets: paths::targets(),
            take_turns: true,
            priority: self.priority,
            reports: paths::runtime().ok().map(|private| private.path().to_owned()),
        })
    }

    /// Starts the regulator of the command that this process is about to become, within the limits
    /// of its class.
    ///
    /// # Errors
    /// No process could be made, or `/proc` cannot be read: the command then runs unregulated.
    pub fn start_beside(&self, class: Option<MappedClass>) -> anyhow::Result<launch::HeldBack> {
        let limits = class.map_or(Limits::UNLIMITED, |found| found.class.limits());
        let mut options = self.options(Vec::new(), text(&limits))?;
        // Its regulator saves what it has learnt when no longer observed.
        if let Err(why) = is_remembered(options.targets.as_deref()) {
            tell!("discnice: progress targets are not kept, each run calibrates anew: {why}");
        }
        let held_back = launch::start(move |job| {
            options.roots = vec![job];
            // The reader of messages has gone; what happens stands in the report.
            regulate(&options, &mut HeldJob::default(), &mut Unattended(class));
        })?;
        Ok(held_back)
    }
}

/// Whether progress targets can be kept.
fn is_remembered(targets: Option<&Path>) -> Result<(), String> {
    let Some(directory) = targets else {
        return Err("neither XDG_STATE_HOME nor HOME is set".into());
    };
    let cannot = |error| format!("cannot write to {}: {error}", Foreign::path(directory));
    store::try_out(directory).map_err(cannot)
}

/// The limits as part of a job's identity.
fn text(limits: &Limits) -> String {
    let limited = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
    limited.map(|one| format!("{}={};", one.name(), limits.rate(one).get())).collect()
}

/// A regulator in the foreground: the user is there.
pub struct Attended;

impl Outside for Attended {
    fn tell(&mut self, line: &str) {
        tell!("discnice: {line}");
    }

    fn held(&mut self, _: &Tree) -> Nanos {
        Nanos(0)
    }

    fn priority(&self) -> Option<u32> {
        None
    }
}

/// A regulator without an observer, beside a command that may be under limits.
struct Unattended(Option<MappedClass>);

impl Outside for Unattended {
    fn tell(&mut self, _: &str) {}

    fn held(&mut self, tree: &Tree) -> Nanos {
        let Some(found) = self.0 else { return Nanos(0) };
        let is_ours = |process: u32| tree.iter().any(|member| member.id == process);
        let waits = found.class.living(is_ours).map(|member| member.books().waited());
        Nanos(waits.sum())
    }

    fn priority(&self) -> Option<u32> {
        self.0.map(|found| found.class.weight())
    }
}
