//! Stopping the job, and continuing it.

use std::ops::ControlFlow;

use discnice_processes::stopper::Stopper;
use discnice_processes::tree::Tree;
use discnice_processes::wishes;
use discnice_sys::procfs::Stat;
use discnice_units::{Moment, Nanos};

use super::Job;
use crate::control::lock_waiters::is_awaited;
use crate::model::{Judgment, Verdict};
use crate::testpoint::watch::Pose;
use crate::testpoint::{clock, thread};

/// A stopped job is kept so at this pace.
const KEEP: Nanos = Nanos(40_000_000);
/// Time for which a job that got a signal that asks it to end or to stop is left alone, to clean up and to exit.
const GRACE: Nanos = Nanos(10_000_000_000);
/// A job that limits held for this share of the time between two looks is as fast as they allow.
const HELD_FRAC: f64 = 0.1;

impl Job<'_> {
    /// Does as the verdict says.
    pub(super) fn obey(&mut self, verdict: Verdict, at: Moment) {
        let held = self.was_held(at);
        if at < self.let_be_until {
            return self.regulator.resumed(at, false);
        }
        match verdict {
            // The job is slow, but because of its limits and not because of others.
            Verdict::Suspend(_) if held => self.regulator.resumed(at, false),
            Verdict::Suspend(_) | Verdict::Hold(_) if is_awaited(&self.tree) => {
                self.let_on();
                self.regulator.resumed(at, false);
            }
            Verdict::Suspend(suspend) => {
                // It shows no good times.
                self.seen = None;
                self.summary.suspensions += 1;
                self.post(true);
                let stopped = self.step_aside(suspend.until, suspend.early_from);
                self.summary.suspended = self.summary.suspended.plus(stopped);
                self.post(false);
            }
            Verdict::Hold(until) => drop(self.step_aside(until, None)),
            Verdict::Proceed(judgment) => {
                if judgment == Judgment::Poor {
                    self.summary.elsewhere += 1;
                    self.post(false);
                }
                self.take_turn();
            }
            Verdict::Skipped(_) => self.take_turn(),
        }
    }

    fn let_on(&mut self) {
        self.summary.let_on += 1;
        self.post(false);
    }

    /// Returns true if it was limits that the job waited for since the last look.
    fn was_held(&mut self, at: Moment) -> bool {
        let now = self.outside.held(&self.tree);
        let (before, since) = std::mem::replace(&mut self.held, (now, at));
        now.minus(before).0 as f64 > HELD_FRAC * at.since(since).0 as f64
    }

    /// Stops the job until it may go on; for how long it was stopped.
    fn step_aside(&mut self, until: Moment, early_from: Option<Moment>) -> Nanos {
        if let Some(seat) = &self.seat {
            seat.away();
        }
        let start = clock::now();
        if let Err(error) = self.stopper.stop(&mut self.tree) {
            self.tell(&format!("cannot stop the job: {error}; it runs unregulated"));
            return Nanos(0);
        }
        let Self { stopper, tree, watch, used, seat, detector, .. } = self;
        let mut cut = None;
        let early = thread::wait(detector, until, early_from, KEEP, |now| {
            cut = keep_stopped(*stopper, tree);
            if cut.is_some() {
                return ControlFlow::Break(());
            }
            // Each look counts once.
            let due = now.since(watch.looked_at()) >= thread::LOOK;
            let look = || watch.look(now, used.total(tree, seat.as_ref()), Pose::Suspended);
            ControlFlow::Continue(due.then(look).flatten())
        });
        if let Some(seat) = self.seat.as_ref().filter(|_| cut.is_none()) {
            seat.turn(|| {
                cut = keep_stopped(*stopper, tree);
                if cut.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        self.go_on(early, cut);
        clock::now().since(start)
    }

    fn take_turn(&mut self) {
        let Some(seat) = &self.seat else { return };
        let (stopper, tree) = (&mut *self.stopper, &mut self.tree);
        let (mut waited, mut cut, mut failed) = (false, None, None);
        seat.turn(|| {
            if !waited && is_awaited(tree) {
                cut = Some(Cut::Awaited);
                return ControlFlow::Break(());
            }
            if !std::mem::replace(&mut waited, true)
                && let Err(error) = stopper.stop(tree)
            {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            cut = keep_stopped(stopper, tree);
            if cut.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Some(error) = failed {
            self.tell(&format!("cannot stop the job: {error}; it takes no turns"));
            self.seat = None;
        }
        if waited {
            self.go_on(false, cut);
        } else if cut.is_some() {
            self.let_on();
        }
    }

    /// Continues the job at the end of a suspension, or because that was cut short.
    fn go_on(&mut self, early: bool, cut: Option<Cut>) {
        self.stopper.resume();
        let now = clock::now();
        self.regulator.resumed(now, early);
        match cut {
            Some(Cut::Asked) => self.let_be_until = now.plus(GRACE),
            Some(Cut::Awaited) => self.let_on(),
            None => {}
        }
    }
}

/// Why a job is continued before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// It was asked to end or to stop, was killed, or cannot be kept stopped.
    Asked,
    /// Others wait for a lock that it holds.
    Awaited,
}

/// Keeps the job stopped; returns why it has to be continued, if it has.
fn keep_stopped(stopper: &mut dyn Stopper, tree: &mut Tree) -> Option<Cut> {
    tree.update();
    if tree.is_empty() {
        return Some(Cut::Asked);
    }
    let is_asked = |member: &Stat| wishes::awaits(member.id, wishes::ENDS_AND_STOPS);
    // After an error the job runs.
    if stopper.keep(tree).is_err() || tree.iter().any(is_asked) {
        return Some(Cut::Asked);
    }
    is_awaited(tree).then_some(Cut::Awaited)
}
