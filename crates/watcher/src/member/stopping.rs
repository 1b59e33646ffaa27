//! A member stands, and goes on.

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{Mechanism, Reason};
use discnice_regulator::ledger;
use discnice_sys::{deadline, time};
use discnice_units::Nanos;

use super::{Role, Watched};
use crate::holding::{self, Grip, Means, Refused, Tracer};
use crate::schedule::duty;
use crate::tuning;

impl Watched {
    pub(super) fn press(&mut self, now: Nanos, until: Nanos, moved: bool) -> Nanos {
        if !moved && now < self.press_at {
            return until.min(duty::close(now));
        }
        deadline::arm();
        // A process that waits for a pipe most of the time is asleep whenever it is to be stopped.
        self.slips += u32::from(moved && self.held_since.is_some());
        if self.slips >= tuning::holding::SLIPS && self.hold.means() == Means::Tracer {
            // A debugger, which stands for nothing.
            return self.give_up(Refused::Traced, now, tuning::holding::TRACER_RETRY);
        }
        let all = self.paused || self.slips >= tuning::holding::SLIPS;
        let pressed = if all { self.hold.press_all() } else { self.hold.press() };
        match pressed {
            Ok(grip) => {
                self.is_unheld = false;
                if self.paused && !self.stands && (grip == Grip::Firm || !self.runs()) {
                    self.stands = true;
                    self.note_paused();
                }
                // Threads that could not be let go yet, as they wait for a disk, stay.
                self.letting_go = false;
                if self.held_since.is_none() {
                    self.held_since = Some(now);
                }
                let after = time::now();
                self.press_at =
                    after.plus(Nanos(after.minus(now).0 * tuning::holding::PRESS_SHARE));
                if grip == Grip::Firm { until } else { until.min(duty::close(after)) }
            }
            Err(refused) => self.resort(refused, now),
        }
    }

    /// Another mechanism, or none for a while.
    fn resort(&mut self, refused: Refused, now: Nanos) -> Nanos {
        self.let_go();
        if refused == Refused::Traced && self.resort_to_tracer() {
            self.note_how(self.reason);
            return now;
        }
        let (process, means) = (self.pinned.process, self.hold.means());
        if refused == Refused::Forbidden
            && let Some(next) = holding::next_best(process, means, &self.helpers.guards)
        {
            self.hold = next;
            self.note_how(self.reason);
            return now;
        }
        self.give_up(refused, now, tuning::holding::LONGEST_STOP)
    }

    /// Nothing holds it for so long.
    fn give_up(&mut self, refused: Refused, now: Nanos, time: Nanos) -> Nanos {
        self.let_go();
        if self.hold.means() == Means::Tracer {
            self.hold = holding::best(self.pinned.process);
        }
        if let Some(held) = self.held() {
            held.set_how(Mechanism::None, refused.reason());
        }
        self.refused_until = now.plus(time);
        (self.is_unheld, self.stands) = (true, false);
        self.refused_until.min(duty::close(now).plus(tuning::holding::LONGEST_STOP))
    }

    /// Lets go of the process for a moment, so that another can trace it; returns until when. `None` if that is not needed,
    /// or has been granted for long enough.
    pub fn make_way(&mut self, now: Nanos) -> Option<Nanos> {
        if self.hold.means() != Means::Ptrace
            || self.refused_until >= now.plus(tuning::holding::DEBUGGER_WINDOW)
        {
            return None;
        }
        let passed = now.minus(self.way_at);
        let used =
            Nanos(self.way_used.0.saturating_sub(passed.0 / tuning::holding::DEBUGGER_REFILL))
                .plus(passed.min(tuning::holding::DEBUGGER_WINDOW));
        if used > tuning::holding::DEBUGGER_BUDGET {
            return None;
        }
        if self.held_since.is_none() && crate::process::tracer(self.id().cast_signed()).is_some() {
            return None;
        }
        (self.way_at, self.way_used) = (now, used);
        self.let_go();
        self.refused_until = now.plus(tuning::holding::DEBUGGER_WINDOW);
        Some(self.refused_until)
    }

    /// It is traced: its tracer stands for it, if that is of the class, too; one that traces it no more is let go for good.
    fn resort_to_tracer(&mut self) -> bool {
        if self.hold.means() == Means::Tracer {
            self.hold = holding::best(self.pinned.process);
            return true;
        }
        let Some(tracer) = Tracer::of(self.id(), |id| self.class.listed(id).is_some()) else {
            return false;
        };
        self.hold = Box::new(tracer);
        true
    }

    /// It stands until then, whatever it owes, so that its pages grow old; again and again while it is to.
    pub fn rest(&mut self, until: Nanos) {
        let now = time::now();
        if self.rests_until <= now
            && let Some(held) = self.held()
        {
            held.set_how(self.hold.mechanism(), Reason::Memory);
        }
        self.rests_until = until;
        self.duty.owe(now, until);
    }

    /// It need not stand for its memory any more.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.rests_until) > Nanos(0) {
            self.limits_changed();
            self.note_how(self.reason);
        }
    }

    /// Whether the user wants it, or its class, to stand.
    pub(super) fn is_paused(&self) -> bool {
        self.class.is_paused() || self.is_paused_itself()
    }

    /// Whether the user wants it to stand, whatever its class does.
    #[must_use]
    pub fn is_paused_itself(&self) -> bool {
        let account = self.member().and_then(|member| self.held()?.of(member));
        account.is_some_and(|account| account.paused)
    }

    /// It stands with its parent, which was paused when it was born.
    pub fn inherit_pause(&self) {
        if let (Some(member), Some(held)) = (self.member(), self.held()) {
            let _ = held.set_paused(member, true);
        }
    }

    /// Stands, or goes on, as the user wants. What is noted in the class outlives its watcher: the next one goes on
    /// holding.
    pub(super) fn follow_pause(&mut self, now: Nanos) {
        let wanted = self.is_paused();
        let paused = std::mem::replace(&mut self.paused, wanted);
        if wanted {
            self.duty.owe(now, now.plus(tuning::holding::PAUSE));
        } else if paused {
            self.stands = false;
            self.limits_changed();
            self.note_how(self.reason);
        }
    }

    /// Whether a thread runs, or is about to. Right after all were told to stop, one that does not run is stopped, or
    /// stops before it leaves the kernel.
    fn runs(&self) -> bool {
        crate::process::has_thread_in(self.id(), b"R")
    }

    pub(super) fn note_paused(&self) {
        if let Some(held) = self.held() {
            held.set_how(self.hold.mechanism(), Reason::Paused);
        }
    }

    /// Whether it, or something of it, is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_since.is_some() || self.letting_go
    }

    /// What has stopped or ended is taken note of.
    pub fn tend(&mut self) {
        if self.is_held() {
            self.hold.tend();
        }
        if self.letting_go {
            self.letting_go = !self.hold.release();
        }
    }

    /// Stops watching: the process gets its read-ahead back, and is let go as soon as possible.
    pub fn leave(&mut self) {
        self.read_ahead.give_back(&self.pinned);
        self.let_go();
    }

    /// Lets go of the process as soon as possible.
    pub fn let_go(&mut self) {
        if let Some(since) = self.held_since.take() {
            // What was being read when it was stopped has come by now.
            let now = time::now();
            if self.role == Role::Outside || self.reason == Reason::RanAhead {
                self.read_ahead.shape(&self.pinned, self.class, now);
            }
            if let Some(held) = self.held() {
                held.add_frozen(now.minus(since).0);
            }
            self.letting_go = true;
            self.slips =
                if self.slips < tuning::holding::SLIPS { 0 } else { tuning::holding::SLIPS - 1 };
        }
        if self.letting_go {
            self.letting_go = !self.hold.release();
        }
    }

    /// Whether something of it is still to be let go.
    #[must_use]
    pub fn is_letting_go(&self) -> bool {
        self.letting_go
    }

    /// The limits changed.
    pub fn limits_changed(&mut self) {
        self.read_ahead.follow(&self.pinned, self.class);
        self.relent();
    }

    /// It stands no longer than for what its class owes now, for its memory, or for its write-back.
    pub(super) fn relent(&mut self) {
        let both = Charged { read: 1, written: 1 };
        let owed = ledger::paid_at(self.class, time::now(), both);
        self.duty.relent(owed.max(self.rests_until).max(self.awaits_until));
    }
}
