//! The regulator's loop (MS Manners, section 7.2): look, judge, stop, continue.

use std::io;
use std::path::PathBuf;

use discnice_manners::polling::Polling;
use discnice_manners::superintendent::Resources;
use discnice_manners::{
    Config, Judgment, Others, QuietDetector, Regulator, Skip, Targets, Testpoint, Verdict,
};
use discnice_testpoint::arbiter::Seat;
use discnice_testpoint::store::{Loaded, Store};
use discnice_testpoint::watch::{Usage, Watch};
use discnice_testpoint::{clock, paths, thread};
use discnice_units::Nanos;

use crate::guardian::Guardian;
use crate::metric::account::{Account, What};
use crate::metric::{Metric, Source};
use crate::stopper;
use crate::tree::{Process, Tree};

/// The polling interval's limits.
const SHORTEST: Nanos = Nanos(200_000_000);
const LONGEST: Nanos = Nanos(5_000_000_000);
/// New descendants are looked for this often.
const REFRESH: Nanos = Nanos(1_000_000_000);
/// Others are looked at this often while the job runs.
const LOOK: Nanos = Nanos(1_000_000_000);
/// Targets are saved this often.
const SAVE: Nanos = Nanos(60_000_000_000);
/// The default priority, as of a thread that uses the library.
const WEIGHT: f64 = 100.0;

/// What to regulate, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The processes; their descendants belong to the job.
    pub roots: Vec<Process>,
    /// What counts as progress; at least one.
    pub metrics: Vec<Metric>,
    /// Parameters of the regulation.
    pub config: Config,
    /// Where targets are kept; `None` keeps none.
    pub targets: Option<PathBuf>,
    /// Whether polite jobs of this user take turns.
    pub take_turns: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// How long the job was regulated.
    pub lasted: Nanos,
    /// How long it was stopped because its progress was poor.
    pub suspended: Nanos,
    /// How often.
    pub suspensions: u64,
    /// Looks at which a metric could not be read, so that the job went on unregulated.
    pub blind: u64,
}

/// Regulates until all processes of the job have ended. `tell` gets one line for each thing that the
/// user should know and that does not end the regulation.
///
/// # Errors
/// Where no guardian can be started: nothing is ever stopped without one.
pub fn regulate(options: &Options, tell: &mut dyn FnMut(&str)) -> io::Result<Summary> {
    let mut job = Job::new(options, tell)?;
    let start = clock::now();
    let mut polling = Polling::new(SHORTEST, LONGEST);
    loop {
        clock::sleep(polling.interval());
        job.members();
        if job.tree.is_empty() {
            break;
        }
        let progress = job.look(tell);
        polling.looked(progress);
        job.tend(tell);
    }
    job.save(tell);
    job.summary.lasted = clock::now().minus(start);
    Ok(job.summary)
}

struct Job {
    tree: Tree,
    sources: Vec<(String, Box<dyn Source>)>,
    guardian: Guardian,
    regulator: Regulator,
    detector: QuietDetector,
    watch: Watch,
    others: Others,
    targets: Targets,
    store: Option<Store>,
    seat: Option<Seat>,
    used: Used,
    refreshed: Nanos,
    saved: Nanos,
    blind: bool,
    summary: Summary,
}

impl Job {
    fn new(options: &Options, tell: &mut dyn FnMut(&str)) -> io::Result<Self> {
        let guardian = Guardian::start()?;
        let tree = Tree::new(&options.roots);
        let store = options.targets.clone().map(|d| Store::new(d, identity(options)));
        let targets = store.as_ref().map_or_else(Targets::default, |s| load(s, tell));
        let seat = || {
            let table = paths::runtime().ok()?.join("seats");
            Seat::take(&table, WEIGHT, Resources::ALL, options.config.hung).ok()
        };
        let now = clock::now();
        Ok(Self {
            used: Used::new(),
            tree,
            sources: options.metrics.iter().map(|m| (m.to_string(), m.open())).collect(),
            guardian,
            regulator: Regulator::new(&options.config),
            detector: QuietDetector::default(),
            watch: Watch::default(),
            others: Others::Unknown,
            targets,
            store,
            seat: options.take_turns.then(seat).flatten(),
            refreshed: now,
            saved: now,
            blind: false,
            summary: Summary::default(),
        })
    }

    fn members(&mut self) {
        let now = clock::now();
        if now.minus(self.refreshed) >= REFRESH {
            self.refreshed = now;
            self.tree.refresh();
        } else {
            self.tree.update();
        }
    }

    /// One look at the job: a testpoint on its behalf. Whether there was progress.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) -> bool {
        let metrics = self.read(tell);
        let at = clock::now();
        let mut seen = None;
        if at.minus(self.watch.looked_at()) >= LOOK {
            let own = self.used.total(&self.tree, self.seat.as_ref());
            seen = self.watch.look(at, own);
        }
        if let Some(signals) = &seen {
            self.others = self.detector.while_running(signals);
        }
        let call = Testpoint { at, index: 0, metrics: &metrics, others: self.others };
        let verdict = self.regulator.testpoint(&mut self.targets, &call);
        if let (Verdict::Proceed(Judgment::Good), Some(signals)) = (verdict, seen) {
            self.detector.learn_good(&signals);
        }
        match verdict {
            Verdict::Suspend(suspend) => {
                let stopped = self.step_aside(suspend.until, suspend.early_from, tell);
                self.summary.suspended = self.summary.suspended.plus(stopped);
                self.summary.suspensions += 1;
            }
            Verdict::Hold(until) => drop(self.step_aside(until, None, tell)),
            Verdict::Proceed(_) | Verdict::Skipped(_) => self.take_turn(tell),
        }
        verdict != Verdict::Skipped(Skip::NoProgress)
    }

    /// The metrics; one that cannot be read is not a number, which the regulator passes over.
    fn read(&mut self, tell: &mut dyn FnMut(&str)) -> Vec<f64> {
        let mut failed = None;
        let mut values = Vec::with_capacity(self.sources.len());
        for (name, source) in &mut self.sources {
            values.push(source.read(&self.tree).unwrap_or_else(|error| {
                failed = Some(format!("metric {name}: {error}; the job runs unregulated"));
                f64::NAN
            }));
        }
        self.summary.blind += u64::from(failed.is_some());
        match failed {
            Some(line) if !self.blind => tell(&line),
            None if self.blind => tell("all metrics can be read again"),
            _ => {}
        }
        self.blind = values.iter().any(|value| value.is_nan());
        values
    }

    /// Stops the job until it may go on; for how long it was stopped.
    fn step_aside(
        &mut self,
        until: Nanos,
        early_from: Option<Nanos>,
        tell: &mut dyn FnMut(&str),
    ) -> Nanos {
        if let Some(seat) = &self.seat {
            seat.away();
        }
        let start = clock::now();
        if let Err(error) = stopper::stop(&mut self.guardian, &mut self.tree) {
            tell(&format!("cannot stop the job: {error}; it runs unregulated"));
            return Nanos(0);
        }
        let Self { guardian, tree, watch, used, seat, detector, .. } = self;
        let early = thread::wait(detector, until, early_from, |now| {
            // Without a guardian the job has been continued; the wait goes on and does no harm.
            let _ = guardian.check();
            watch.look(now, used.total(tree, seat.as_ref()))
        });
        if let Some(seat) = &self.seat {
            seat.turn(|| {
                let _ = self.guardian.check();
            });
        }
        self.guardian.resume();
        self.regulator.resumed(clock::now(), early);
        clock::now().minus(start)
    }

    fn take_turn(&mut self, tell: &mut dyn FnMut(&str)) {
        let Some(seat) = &self.seat else { return };
        let (guardian, tree) = (&mut self.guardian, &mut self.tree);
        let mut waited = false;
        seat.turn(|| {
            if std::mem::replace(&mut waited, true) {
                // Without a guardian the job has been continued.
                let _ = guardian.check();
            } else if let Err(error) = stopper::stop(guardian, tree) {
                tell(&format!("cannot stop the job: {error}"));
            }
        });
        if waited {
            self.guardian.resume();
            self.regulator.resumed(clock::now(), false);
        }
    }

    fn tend(&mut self, tell: &mut dyn FnMut(&str)) {
        if clock::now().minus(self.saved) >= SAVE {
            self.save(tell);
        }
    }

    fn save(&mut self, tell: &mut dyn FnMut(&str)) {
        self.saved = clock::now();
        if let Some(store) = &self.store
            && let Err(error) = store.save(&self.targets)
        {
            tell(&format!("targets not saved: {error}"));
        }
    }
}

/// What the job and its regulator have used, and how much of it all polite jobs know.
struct Used {
    cpu: Account,
    read: Account,
    written: Account,
    published: Usage,
}

impl Used {
    fn new() -> Self {
        Self {
            cpu: Account::new(What::Cpu),
            read: Account::new(What::Read),
            written: Account::new(What::Written),
            published: Usage::default(),
        }
    }

    fn total(&mut self, tree: &Tree, seat: Option<&Seat>) -> Usage {
        let own = Usage::own();
        // Another user's account cannot be read; then the job's own traffic looks like others'.
        let now = Usage {
            cpu: own.cpu + self.cpu.read(tree).unwrap_or(0.0),
            read: own.read + self.read.read(tree).unwrap_or(0.0),
            written: own.written + self.written.read(tree).unwrap_or(0.0),
        };
        let Some(seat) = seat else { return now };
        let used = now.since(self.published);
        self.published = now;
        seat.publish(used)
    }
}

/// One executable may be regulated by different metrics, whose targets have nothing in common.
fn identity(options: &Options) -> String {
    let executable = options.roots.first().and_then(|root| {
        std::fs::read_link(format!("/proc/{}/exe", root.pid.as_raw_nonzero())).ok()
    });
    let metrics: Vec<String> = options.metrics.iter().map(Metric::to_string).collect();
    format!("{}\0outside\0{}", executable.unwrap_or_default().display(), metrics.join("\0"))
}

fn load(store: &Store, tell: &mut dyn FnMut(&str)) -> Targets {
    match store.load() {
        Loaded::Targets(targets) => return *targets,
        Loaded::Nothing => {}
        Loaded::SetAside { now, why } => {
            tell(&format!("targets set aside as {}: {why}", now.display()));
        }
        Loaded::Unreadable(error) => tell(&format!("targets not read: {error}")),
    }
    Targets::default()
}
