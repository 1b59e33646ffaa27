//! The calling thread's part: decide by its regulator, then wait.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use discnice_units::{Moment, Nanos};

use crate::model::superintendent::DeclaredResources;
use crate::model::{Judgment, Others, QuietDetector, Regulator, Signals, Skip, Testpoint, Verdict};
use crate::testpoint::arbiter::{self, Seat};
use crate::testpoint::watch::Pose;
use crate::testpoint::{clock, job};

/// What a testpoint did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Too soon after the last one: nothing was looked at.
    TooSoon,
    /// The job goes on at once, with this judgment.
    Went(Judgment),
    /// The job was suspended, for so long.
    Suspended(Nanos),
    /// The job is on probation and waited, for so long.
    Held(Nanos),
    /// The job goes on; the report taught nothing.
    Skipped(Skip),
}

thread_local! {
    /// Before this moment, testpoints return at once.
    static NEXT: Cell<u64> = const { Cell::new(0) };
    //= ms-manners/4.5-subset
    static THREAD: RefCell<Option<Supervised>> = const { RefCell::new(None) };
    static WISHES: Cell<Wishes> = const { Cell::new(Wishes::DEFAULT) };
}

/// What the thread asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wishes {
    weight: u32,
    resources: DeclaredResources,
    critical: bool,
}

impl Wishes {
    const DEFAULT: Self = Self { weight: 100, resources: DeclaredResources::ALL, critical: false };
}

//= ms-manners/7.1-priority
/// Sets this thread's priority relative to other polite threads of the user: with 200 it gets twice
/// the time of one with 100, the default. Zero counts as one.
pub fn set_priority(weight: u32) {
    WISHES.set(Wishes { weight: weight.max(1), ..WISHES.get() });
}

//= ms-manners/4.5-overlapping
/// Declares what this thread uses, one bit for each resource, by a convention among the user's
/// jobs. Threads with disjoint bits may run side by side. Zero, like saying nothing, means all
/// resources.
pub fn set_resources(bits: u64) {
    let resources = if bits == 0 { DeclaredResources::ALL } else { DeclaredResources(bits) };
    WISHES.set(Wishes { resources, ..WISHES.get() });
}

//= ms-manners/4.3-critical
/// A critical thread ignores regulation: its testpoints never wait. What it measures while it
/// should have waited is not learned (paper section 4.3).
pub fn set_critical(critical: bool) {
    WISHES.set(Wishes { critical, ..WISHES.get() });
}

//= ms-manners/7.1-lightweight
/// Reports progress and returns when it is fine to go on (paper section 7.1).
///
/// `index` names the set of metrics (a phase of the job), `metrics` holds its cumulative counters.
/// Bad counters are ignored and named in the outcome; the call never fails and never panics.
#[inline]
pub fn testpoint(index: u32, metrics: &[f64]) -> Outcome {
    testpoint_until(index, metrics, &mut || false)
}

/// Reports progress like [`testpoint`], and no longer waits once `stop` returns true, which is asked several times a
/// second meanwhile: for an interpreter that handles signals between its own instructions only.
#[inline]
pub fn testpoint_until(index: u32, metrics: &[f64], stop: Stop<'_>) -> Outcome {
    // The lightweight test; everything else is kept out of the caller's loop.
    if NEXT.try_with(|next| clock::roughly_now().0 < next.get()).unwrap_or(true) {
        return Outcome::TooSoon;
    }
    full(index, metrics, stop)
}

/// Returns true once a wait is to end, and from then on.
pub type Stop<'a> = &'a mut dyn FnMut() -> bool;

#[cold]
fn full(index: u32, metrics: &[f64], stop: Stop<'_>) -> Outcome {
    let outcome = THREAD.try_with(|thread| {
        // A signal handler that calls testpoint within testpoint finds the cell taken.
        let mut thread = thread.try_borrow_mut().ok()?;
        if thread.as_ref().is_some_and(|t| t.pid != std::process::id()) {
            // A forked child is a job of its own.
            *thread = None;
        }
        let outcome = thread.get_or_insert_with(Supervised::new).testpoint(index, metrics, stop);
        NEXT.set(clock::now().plus(job::settings().interval).0);
        Some(outcome)
    });
    outcome.ok().flatten().unwrap_or(Outcome::TooSoon)
}

//= ms-manners/4.5-per-thread
/// The supervisor of one thread.
struct Supervised {
    regulator: Regulator,
    detector: QuietDetector,
    others: Others,
    /// When this thread last saw what others do.
    looked_at: Moment,
    /// The latest look of which it is not known yet whether it was in good times.
    seen: Option<Signals>,
    seat: Option<Seat>,
    wishes: Wishes,
    pid: u32,
}

impl Supervised {
    fn new() -> Self {
        let config = job::config();
        let wishes = WISHES.get();
        let seat = || {
            let table = arbiter::table().ok()?;
            let weight = f64::from(wishes.weight);
            Seat::take(table, weight, wishes.resources, config.hung).ok()
        };
        Self {
            regulator: Regulator::new(config),
            detector: QuietDetector::default(),
            others: Others::Unknown,
            looked_at: Moment::FIRST,
            seen: None,
            seat: job::settings().take_turns.then(seat).flatten(),
            wishes,
            pid: std::process::id(),
        }
    }

    fn testpoint(&mut self, index: u32, metrics: &[f64], stop: Stop<'_>) -> Outcome {
        let at = clock::now();
        let wishes = WISHES.get();
        if wishes != self.wishes {
            self.wishes = wishes;
            if let Some(seat) = &self.seat {
                seat.declare(f64::from(wishes.weight), wishes.resources);
            }
        }
        let decided = job::with(|job| {
            job.tend(at);
            if let Some(seat) = self.seat.as_ref().filter(|seat| !seat.alone()) {
                let _ = job.publish(Some(seat));
            }
            let urgent = self.regulator.lags();
            let (last, seat) = (self.looked_at, self.seat.as_ref());
            if let Some(signals) = job.look_while_running(at, last, seat, urgent) {
                self.looked_at = at;
                self.others = self.detector.while_running(at, &signals, || job.stalled_frac(at));
                self.seen = Some(signals);
            }
            let call = Testpoint { at, index, metrics, others: self.others };
            self.regulator.testpoint(&mut job.targets, &call)
        });
        let Some(verdict) = decided else { return Outcome::TooSoon };
        if verdict == Verdict::Proceed(Judgment::Good) {
            self.detector.good(self.seen.take().as_ref());
        }
        if wishes.critical {
            return Self::told(verdict, at);
        }
        match verdict {
            Verdict::Suspend(suspend) => {
                // It shows no good times.
                self.seen = None;
                self.step_aside(suspend.until, suspend.early_from, stop);
            }
            Verdict::Hold(until) => self.step_aside(until, None, stop),
            Verdict::Proceed(_) | Verdict::Skipped(_) => self.take_turn(stop),
        }
        Self::told(verdict, at)
    }

    fn told(verdict: Verdict, at: Moment) -> Outcome {
        let waited = clock::now().since(at);
        match verdict {
            Verdict::Proceed(judgment) => Outcome::Went(judgment),
            Verdict::Suspend(_) => Outcome::Suspended(waited),
            Verdict::Hold(_) => Outcome::Held(waited),
            Verdict::Skipped(skip) => Outcome::Skipped(skip),
        }
    }

    //= ms-manners/7.1-supervisor
    /// Waits for the turn, and does not count the wait as the job's own time.
    fn take_turn(&mut self, stop: Stop<'_>) {
        let Some(seat) = &self.seat else { return };
        let mut waited = false;
        seat.turn(|| {
            waited = true;
            unless(stop())
        });
        if waited {
            self.regulator.resumed(clock::now(), false);
        }
    }

    fn step_aside(&mut self, until: Moment, early_from: Option<Moment>, stop: Stop<'_>) {
        if let Some(seat) = &self.seat {
            seat.away();
        }
        let early = wait(&mut self.detector, until, early_from, LOOK, |now| {
            unless(stop())?;
            let look = |job: &mut job::Job| job.look(now, self.seat.as_ref(), Pose::Suspended);
            ControlFlow::Continue(job::with(look).flatten())
        });
        if let Some(seat) = &self.seat {
            seat.turn(|| unless(stop()));
        }
        self.regulator.resumed(clock::now(), early);
    }
}

fn unless(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// How often a suspended thread looks whether the machine went quiet.
pub const LOOK: Nanos = Nanos(250_000_000);

/// Waits until `until`, or from `early_from` on until `look` shows a quiet machine; whether the
/// latter. `look` is called every `nap` in any case, and may end the wait.
pub fn wait(
    detector: &mut QuietDetector,
    until: Moment,
    early_from: Option<Moment>,
    nap: Nanos,
    mut look: impl FnMut(Moment) -> ControlFlow<(), Option<Signals>>,
) -> bool {
    detector.suspended();
    loop {
        let now = clock::now();
        if now >= until {
            return false;
        }
        let ControlFlow::Continue(seen) = look(now) else { return false };
        let quiet = seen.is_some_and(|signals| detector.look(&signals));
        if quiet && early_from.is_some_and(|from| now >= from) {
            return true;
        }
        clock::sleep(nap.min(until.since(now)));
    }
}
