//! One look at a process: what is new is charged, and it is held or let go.

use discnice_ledger::State;
use discnice_ledger::policy::Resources;
use discnice_sys::time;
use discnice_units::{Moment, Nanos};

use super::role::{Role, rest, rest_in};
use super::{Gone, Watched, mark};
use crate::accounting::Rest;
use crate::process;
use crate::schedule::crowd;
use crate::schedule::stops::{self, Decision};
use crate::tuning;

impl Watched {
    /// Whether the process does nothing, as far as one look at its account tells: then when to look
    /// again. In a crowd most do nothing at most times.
    fn glance(&mut self, now: Moment, crowd: Nanos) -> Option<Moment> {
        let pace = self.schedule.idle_pace(now, crowd)?;
        let state = self.member()?.state();
        let same = state != State::Free
            && self.part_in(state) == (self.role, self.reason)
            && self.holding.pause.is_wanted == self.is_paused();
        let sure = same && !self.is_letting_go() && !self.may_be_bereaved();
        if !sure || self.schedule.needs_thorough_look() {
            return None;
        }
        let preloaded = self.role == Role::Preloaded;
        if preloaded && self.class.watcher().is_strict() {
            return None;
        }
        let seldom = pace >= tuning::looks::SLEPT_FIRST;
        if seldom && self.accounting.account.has_slept() {
            let pace = if preloaded { pace.max(tuning::looks::ASLEEP) } else { pace };
            return Some(crowd::next(now, pace, crowd));
        }
        if self.accounting.account.is_shut() {
            return None;
        }
        self.schedule.note_glance();
        if !self.accounting.account.is_unchanged().ok()? || seldom && self.pinned.has_ended() {
            return None;
        }
        self.note_seen();
        let next = crowd::next(now, pace, crowd);
        Some(if preloaded { next.max(now.plus(tuning::looks::PRELOADED)) } else { next })
    }

    /// Tells `status` what was seen, so that it need not look itself while the process does not run.
    fn note_seen(&self) {
        if let (Some(ran), Some(held), Some(member)) =
            (self.accounting.account.ran(), self.held(), self.member())
        {
            let (own, charged) = (self.accounting.account.own(), member.books().charged());
            held.set_seen(ran.0, own.read.max(charged.read) + own.written.max(charged.written));
        }
    }

    /// Looks at the process, charges what is new, holds it or lets it go; returns when to look again.
    /// `now` may be a moment ago.
    ///
    /// # Errors
    /// It need not be watched any more: nothing of one that was detached is held then; of one that ended the account is
    /// still to be closed ([`Self::end`]).
    pub fn step(&mut self, now: Moment, crowd: Nanos) -> Result<Moment, Gone> {
        if let Some(next) = self.glance(now, crowd) {
            return Ok(next);
        }
        if self.accounting.account.is_shut() {
            return Ok(self.schedule.put_off(now, crowd));
        }
        self.schedule.note_thorough_look();
        let Some(state) = self.follow() else {
            self.leave();
            return Err(if self.pinned.has_ended() { Gone::Ended } else { Gone::Detached });
        };
        self.take_part(state);
        let (class, listed) = (self.class, self.member());
        let known = self.accounting.rest_at(time::now(), Rest::Known);
        // One that confines itself after its state was read may have moved all that it will, and have ended, by now.
        let by_now = || {
            let state = listed.map(discnice_ledger::Member::state).filter(|_| known == Rest::Known);
            state.map_or(Rest::Children, |state| rest_in(class, state))
        };
        if self.accounting.account.look(by_now).is_err() || self.pinned.has_ended() {
            return Err(Gone::Ended);
        }
        let moved = match self.role {
            Role::Outside => self.charge_own(),
            Role::Preloaded => self.charge_if_ahead(),
        };
        let moved = moved | std::mem::take(&mut self.has_traffic);
        let now = time::now();
        if self.holding.is_stopped() {
            // The limits by which its debt was found may be others by now, or may have been overwritten.
            self.shorten_debt();
        }
        self.follow_written(now);
        self.follow_pause(now);
        self.accounting.see_moving(now);
        let (id, paused) = (self.id(), self.holding.pause.is_wanted);
        // What is paused handles signals when it goes on, as what SIGSTOP has stopped does.
        let called = || if paused { process::is_doomed(id) } else { process::is_signalled(id) };
        let next = match self.schedule.decide(now, crowd, called) {
            Decision::Hold(until) if self.may_be_held(now) => self.hold(now, until, moved),
            Decision::Hold(next) | Decision::Run(next) => self.go_on(now, next),
        };
        self.write_back();
        self.note_seen();
        if self.is_letting_go() {
            self.let_go();
        }
        Ok(if self.is_letting_go() {
            next.min(stops::close(now))
        } else if self.writeback.awaits_until.is_some() {
            next.min(now.plus(tuning::writeback::IN_FLIGHT_LOOK))
        } else {
            next
        })
    }

    /// Charges what it did before it ended. Those of its children that ended before it must have left their accounts to
    /// it already; then what is left there of no known process `is_own`.
    pub fn end(&mut self, is_own: bool) {
        if let Some(state) = self.member().map(discnice_ledger::Member::state) {
            self.accounting.account.set_rest(rest(self.role, state));
        }
        // Unreadable when its parent has waited for it: then what is new is that of the parent.
        let _ = self.accounting.account.update(|| Rest::Children);
        if is_own {
            self.accounting.account.settle();
        }
        self.accounting.forget_unlinked();
        self.charge_own();
        self.let_go();
    }

    /// Whether anything that it can stand for is in force.
    fn may_be_held(&self, now: Moment) -> bool {
        let waits = [self.holding.rests_until, self.writeback.awaits_until]
            .into_iter()
            .any(|until| until.is_some_and(|until| now < until));
        let network = || self.class.is_limited_in(Resources::NETWORK);
        self.class.is_limited() || network() || self.holding.pause.is_wanted || waits
    }

    /// Holds it until then, unless nothing can for now; returns when to look again.
    fn hold(&mut self, now: Moment, until: Moment, moved: bool) -> Moment {
        match self.holding.refused_until(now) {
            Some(refused_until) => until.min(refused_until),
            None => self.press(now, until, moved),
        }
    }

    /// Lets it run; returns when to look again, at `next` at the latest.
    fn go_on(&mut self, now: Moment, next: Moment) -> Moment {
        self.let_go();
        self.read_ahead.doubt(&self.pinned, self.class, now);
        let ahead = &self.accounting.ahead;
        if ahead.is_suspect(now) && !ahead.is_caught(now) {
            stops::close(now)
        } else if self.role == Role::Preloaded && !ahead.is_caught(now) {
            next.max(now.plus(tuning::looks::PRELOADED))
        } else {
            next
        }
    }

    /// Finds the process's slot again when it registered anew; `None` when it is no member.
    fn follow(&mut self) -> Option<State> {
        let member = match self.member() {
            Some(member) => member,
            None => {
                let (slot, member) = self.class.listed(self.number)?;
                self.slot = slot;
                self.held()?.begin(member, mark(&self.pinned, self.number));
                self.note_how(self.reason);
                member
            }
        };
        Some(member.state()).filter(|state| *state != State::Free)
    }
}
