//! A member stands, and goes on.

use discnice_ledger::outside::Reason;
use discnice_sys::{deadline, time};
use discnice_units::{Moment, Nanos};

use super::{Role, Watched};
use crate::holding::{Grip, Refused, Tracer};
use crate::schedule::stops;
use crate::tuning;

impl Watched {
    pub(super) fn press(&mut self, now: Moment, until: Moment, moved: bool) -> Moment {
        if !moved && self.holding.is_pressed(now) {
            return until.min(stops::close(now));
        }
        deadline::arm();
        match self.holding.press(now, moved) {
            // A debugger, which stands for nothing.
            None => self.give_up(Refused::Traced, now, tuning::holding::TRACER_RETRY),
            Some(Ok(grip)) => {
                let pause = self.holding.pause;
                if pause.is_wanted && !pause.is_told && (grip == Grip::Firm || !self.runs()) {
                    self.holding.pause.is_told = true;
                    self.note_paused();
                }
                let after = self.holding.note_pressed(now);
                if grip == Grip::Firm { until } else { until.min(stops::close(after)) }
            }
            Some(Err(refused)) => self.resort(refused, now),
        }
    }

    /// Another mechanism, or none for a while.
    fn resort(&mut self, refused: Refused, now: Moment) -> Moment {
        self.let_go();
        let process = self.pinned.process;
        let is_replaced = match refused {
            Refused::Traced => self.resort_to_tracer(),
            Refused::Forbidden => self.holding.fall_back(process, &self.helpers.guards),
            Refused::Foreground => false,
        };
        if is_replaced {
            self.note_how(self.reason);
            return now;
        }
        self.give_up(refused, now, tuning::holding::LONGEST_STOP)
    }

    /// Nothing holds it for so long.
    fn give_up(&mut self, refused: Refused, now: Moment, time: Nanos) -> Moment {
        self.let_go();
        self.holding.leave_tracer(self.pinned.process);
        if let Some(held) = self.held() {
            held.set_how(None, refused.reason());
        }
        let until = now.plus(time);
        self.holding.give_up(until);
        until.min(stops::close(now).plus(tuning::holding::LONGEST_STOP))
    }

    /// Lets go of the process for a moment, so that another can trace it; returns until when. `None` if that is not needed,
    /// or has been granted for long enough.
    pub fn make_way(&mut self, now: Moment) -> Option<Moment> {
        let id = self.id().cast_signed();
        let until = self.holding.open_window(now, || crate::process::tracer(id).is_some())?;
        self.let_go();
        self.holding.refrain(until);
        Some(until)
    }

    /// It is traced: its tracer stands for it, if that is of the class, too; one that traces it no more is let go for good.
    fn resort_to_tracer(&mut self) -> bool {
        if self.holding.leave_tracer(self.pinned.process) {
            return true;
        }
        let Some(tracer) = Tracer::of(self.id(), |id| self.class.listed(id).is_some()) else {
            return false;
        };
        self.holding.replace(Box::new(tracer));
        true
    }

    /// It stands until then, whatever it owes, so that its pages grow old; again and again while it is to.
    pub fn rest(&mut self, until: Moment) {
        let now = time::now();
        if self.holding.rests_until.is_none_or(|until| until <= now)
            && let Some(held) = self.held()
        {
            held.set_how(Some(self.holding.mechanism()), Reason::Memory);
        }
        self.holding.rests_until = Some(until);
        self.schedule.note_debt(now, until);
    }

    /// It need not stand for its memory any more.
    pub fn wake(&mut self) {
        if self.holding.rests_until.take().is_some() {
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
    pub(super) fn follow_pause(&mut self, now: Moment) {
        let wanted = self.is_paused();
        let paused = std::mem::replace(&mut self.holding.pause.is_wanted, wanted);
        if wanted {
            self.schedule.note_debt(now, now.plus(tuning::holding::PAUSE));
        } else if paused {
            self.holding.pause.is_told = false;
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
            held.set_how(Some(self.holding.mechanism()), Reason::Paused);
        }
    }

    /// Whether it, or something of it, is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.holding.is_held()
    }

    /// What has stopped or ended is taken note of.
    pub fn tend(&mut self) {
        self.holding.tend();
    }

    /// Stops watching: the process gets its read-ahead back, and is let go as soon as possible.
    pub fn leave(&mut self) {
        self.read_ahead.give_back(&self.pinned);
        self.let_go();
    }

    /// Lets go of the process as soon as possible.
    pub fn let_go(&mut self) {
        if let Some(since) = self.holding.end_stop() {
            // What was being read when it was stopped has come by now.
            let now = time::now();
            if self.role == Role::Outside || self.reason == Reason::RanAhead {
                self.read_ahead.shape(&self.pinned, self.class, now);
            }
            if let Some(held) = self.held() {
                held.add_frozen(now.since(since).0);
            }
        }
        self.holding.release();
    }

    /// Whether something of it is still to be let go.
    #[must_use]
    pub fn is_letting_go(&self) -> bool {
        self.holding.is_letting_go()
    }

    /// The limits changed.
    pub fn limits_changed(&mut self) {
        self.read_ahead.follow(&self.pinned, self.class);
        self.shorten_debt();
    }

    /// It stands no longer than for what its class owes now, for its memory, or for its write-back.
    pub(super) fn shorten_debt(&mut self) {
        let owed = self.owed(time::now());
        let others = [self.holding.rests_until, self.writeback.awaits_until];
        self.schedule.shorten_debt(others.into_iter().flatten().fold(owed, Moment::max));
    }
}
