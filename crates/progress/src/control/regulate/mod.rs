//! The regulator's loop (MS Manners, section 7.2): look, judge, stop, continue.

mod turns;

use std::io;
use std::os::unix::process::parent_id;

use discnice_processes::stopper::Stopper;
use discnice_processes::tree::{Process, Tree};
use discnice_sys::deadline;
use discnice_units::{Moment, Nanos};
use rustix::process::Pid;

use crate::control::false_progress::Claimed;
use crate::control::kept_targets::{self, Kept};
use crate::control::metric::Source;
use crate::control::options::RegulatorOptions;
use crate::control::phase::Follower;
use crate::control::report::Board;
use crate::control::summary::Summary;
use crate::control::usage::Used;
use crate::model::polling::Polling;
use crate::model::superintendent::DeclaredResources;
use crate::model::{Judgment, Others, QuietDetector, Regulator, Signals, Skip, Testpoint, Verdict};
use crate::testpoint::arbiter::{self, Seat};
use crate::testpoint::clock;
use crate::testpoint::watch::{Pose, Watch};

//= ms-manners/4.1-frequency
/// The polling interval's limits.
const SHORTEST: Nanos = Nanos(200_000_000);
const LONGEST: Nanos = Nanos(5_000_000_000);
/// New descendants are looked for this often, and what others do; at each look at the job while its
/// progress lags. Together, because the work of a descendant that is not known yet would count as
/// others'.
const REFRESH: Nanos = Nanos(1_000_000_000);
/// The default priority, as of a thread that uses the library.
const PRIORITY: u32 = 100;

/// What the loop needs of its caller.
pub trait Outside {
    /// Takes one line for each thing that the user should know and that does not end the
    /// regulation.
    fn tell(&mut self, line: &str);

    /// How long limits have made the job's processes wait so far, all added up. Zero without
    /// limits.
    fn held(&mut self, tree: &Tree) -> Nanos;

    /// The priority of the class that the job is in, which may change while it runs.
    fn priority(&self) -> Option<u32>;
}

//= ms-manners/7.2-unmodified
/// Regulates until all processes of the job have ended.
pub fn regulate(
    options: &RegulatorOptions,
    stopper: &mut dyn Stopper,
    outside: &mut dyn Outside,
) -> Summary {
    let mut job = Job::new(options, stopper, outside);
    let start = clock::now();
    let mut polling = Polling::new(SHORTEST, LONGEST);
    loop {
        // Only the next looks can tell if that is contention, and until they do another program may
        // be waiting for us.
        let hurried = job.regulator.lags();
        clock::sleep(if hurried { Nanos(polling.interval().0 / 2) } else { polling.interval() });
        let fresh = job.members();
        if job.tree.is_empty() {
            break;
        }
        let progress = job.look(fresh);
        if !hurried {
            polling.looked(progress);
        }
        let saved = job.kept.tend();
        job.tell_unsaved(saved);
    }
    let saved = job.kept.save();
    job.tell_unsaved(saved);
    job.summary.lasted = clock::now().since(start);
    job.summary
}

/// The process that is not a part of the job whatever it descends from: this one, or its keeper.
fn regulator() -> u32 {
    if deadline::has_begun() { parent_id() } else { std::process::id() }
}

struct Job<'a> {
    outside: &'a mut dyn Outside,
    board: Board,
    tree: Tree,
    sources: Vec<(String, Box<dyn Source>)>,
    phases: Follower,
    stopper: &'a mut dyn Stopper,
    regulator: Regulator,
    detector: QuietDetector,
    watch: Watch,
    others: Others,
    /// What the last look at others has seen, until progress is judged.
    seen: Option<Signals>,
    kept: Kept,
    seat: Option<Seat>,
    /// What was asked for, and what is declared.
    priority: (Option<u32>, u32),
    used: Used,
    claimed: Claimed,
    refreshed: Moment,
    blind: bool,
    /// Set while the phase cannot be read.
    lost: bool,
    /// How long limits had held the job at the last look, and when that was.
    held: (Nanos, Moment),
    /// Until then nothing is asked of the job.
    let_be_until: Moment,
    summary: Summary,
}

impl<'a> Job<'a> {
    fn new(
        options: &RegulatorOptions,
        stopper: &'a mut dyn Stopper,
        outside: &'a mut dyn Outside,
    ) -> Self {
        let tree = Tree::without(&options.roots, Some(regulator()));
        let first = options.roots.first().copied();
        let reports = options.reports.as_deref().filter(|_| first.is_some());
        let priority = options.priority.or_else(|| outside.priority()).unwrap_or(PRIORITY).max(1);
        let seat = || {
            let table = arbiter::table().ok()?;
            Seat::take(table, f64::from(priority), DeclaredResources::ALL, options.config.hung).ok()
        };
        let now = clock::now();
        let process = first.unwrap_or(Process { pid: Pid::INIT, started: 0 });
        let mut board = Board::new(reports, process);
        board.set_priority(priority);
        Self {
            outside,
            board,
            used: Used::new(&tree),
            claimed: Claimed::new(),
            tree,
            sources: options.metrics.iter().map(|m| (m.to_string(), m.open())).collect(),
            phases: Follower::new(options.phases.as_ref(), &options.metrics),
            stopper,
            regulator: Regulator::new(&options.config),
            detector: QuietDetector::default(),
            watch: Watch::default(),
            others: Others::Unknown,
            seen: None,
            kept: Kept::new(options),
            seat: options.take_turns.then(seat).flatten(),
            priority: (options.priority, priority),
            // At the first look.
            refreshed: Moment::FIRST,
            blind: false,
            lost: false,
            held: (Nanos(0), now),
            let_be_until: Moment::FIRST,
            summary: Summary::default(),
        }
    }

    fn tell(&mut self, line: &str) {
        self.outside.tell(line);
        self.board.notice(line);
    }

    /// Reads the members; whether new ones were looked for.
    fn members(&mut self) -> bool {
        let now = clock::now();
        let due = self.regulator.lags() || now.since(self.refreshed) >= REFRESH;
        if due {
            self.refreshed = now;
            self.tree.refresh();
            self.follow();
            self.follow_priority();
        } else {
            self.tree.update();
        }
        due
    }

    /// The pace of another program is judged by itself.
    fn follow(&mut self) {
        let Some(notices) = self.kept.follow() else { return };
        self.regulator = Regulator::new(&self.regulator.config().clone());
        notices.iter().for_each(|line| self.tell(line));
    }

    //= ms-manners/4.5-outside-priority
    /// Declares the priority of the class where that has changed.
    fn follow_priority(&mut self) {
        let (wanted, declared) = self.priority;
        let now = wanted.or_else(|| self.outside.priority()).unwrap_or(PRIORITY).max(1);
        if now != declared {
            self.priority.1 = now;
            self.board.set_priority(now);
            if let Some(seat) = &self.seat {
                seat.declare(f64::from(now), DeclaredResources::ALL);
            }
        }
    }

    /// One look at the job: a testpoint on its behalf; at others too, if all members are known.
    /// Whether there was progress.
    fn look(&mut self, fresh: bool) -> bool {
        let metrics = self.read();
        let at = clock::now();
        if fresh {
            let own = self.used.total(&self.tree, self.seat.as_ref());
            if let Some(signals) = self.watch.look(at, own, Pose::Running) {
                self.others =
                    self.detector.while_running(at, &signals, || self.watch.stalled_frac(at));
                self.seen = Some(signals);
            }
        }
        let (index, metrics) = self.phase(metrics);
        let call = Testpoint { at, index, metrics: &metrics, others: self.others };
        let verdict = self.regulator.testpoint(&mut self.kept.targets, &call);
        if verdict == Verdict::Proceed(Judgment::Good) {
            self.detector.good(self.seen.take().as_ref());
        }
        self.obey(verdict, at);
        verdict != Verdict::Skipped(Skip::NoProgress)
    }

    fn post(&mut self, suspended: bool) {
        self.board.update(suspended, &self.summary);
    }

    /// The metrics; one that cannot be read is not a number, which the regulator passes over.
    fn read(&mut self) -> Vec<f64> {
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
            Some(line) if !self.blind => self.tell(&line),
            None if self.blind => self.tell("all metrics can be read again"),
            _ => {}
        }
        self.blind = values.iter().any(|value| value.is_nan());
        self.doubt(&values);
        values
    }

    /// The phase that the job is in, and its metrics.
    fn phase(&mut self, values: Vec<f64>) -> (u32, Vec<f64>) {
        let (phase, problem) = self.phases.look(values);
        match problem {
            Some(line) if !self.lost => {
                self.tell(&line);
                self.lost = true;
            }
            None => self.lost = false,
            Some(_) => {}
        }
        if let Some(from) = &phase.from {
            self.regulator.count_from(phase.index, from);
        }
        self.board.set_phase(&phase.name);
        (phase.index, phase.values)
    }

    //= ms-manners/3-false-progress
    /// Tells of progress that cannot be the job's.
    fn doubt(&mut self, values: &[f64]) {
        let Some(metric) = self.claimed.look(values, &self.tree) else { return };
        let name = self.sources.get(metric).map_or("", |(name, _)| name);
        let line = format!(
            "metric {name} rises while the job neither computes nor reads nor writes: it is not its progress; give another one"
        );
        self.tell(&line);
    }

    fn tell_unsaved(&mut self, saved: io::Result<()>) {
        if let Err(error) = saved {
            self.tell(&kept_targets::unsaved(&error));
        }
    }
}
