//! One step of a class under watch: what is due is done.

use discnice_ledger::policy::Resource;
use discnice_ledger::primitive::Ordering;
use discnice_sys::{deadline, time};
use discnice_units::{Moment, Nanos};

use super::Watch;
use crate::discovery::census::Census;
use crate::member::Watched;
use crate::schedule::{crowd, stops};
use crate::tuning;

impl Watch {
    /// Does what is due, of so many processes that are watched in all; returns when to be called again.
    pub fn step(&mut self, watched: usize, census: &mut Census) -> Moment {
        let (now, crowd) = (time::now(), crowd::interval(watched));
        self.discovery.roll_call.set_crowd(crowd);
        self.follow_limits();
        if !self.answer_arrivals(now) && now >= self.discovery.roll_call.due() {
            self.roll_call();
            self.discovery.roll_call.note_made(now);
        }
        if now >= self.discovery.lively_until {
            self.discovery.lively_until = Moment::FIRST;
        }
        self.members.release_leaving();
        self.make_way(now, census);
        self.step_members(now, crowd);
        self.through.follow(now, self.class, &self.helpers.write_back);
        // After known members: to look for others may take its time.
        if !std::mem::replace(&mut self.discovery.has_begun, true)
            && let Some((started, id)) = self.members.all.values().map(Watched::birth).min()
        {
            let newcomers = census.since(now, id, started);
            self.meet(&newcomers);
            census.put_off(now, &newcomers);
        }
        // Those that the class listed are known by now.
        self.class.watcher().follow_births(census.follows_births());
        let roll_call = self.discovery.roll_call.due();
        let next = self.members.next_due().map_or(roll_call, |due| due.min(roll_call));
        if self.members.is_leaving() { next.min(stops::close(now)) } else { next }
    }

    /// If processes have announced themselves, takes those, and looks at members that began to execute a program; whether
    /// any have.
    pub(super) fn answer_arrivals(&mut self, now: Moment) -> bool {
        let arrived = self.has_arrivals();
        if arrived {
            self.discovery.arrivals = self.class.watcher().arrivals();
            self.members.look_at(now, Watched::has_changed, |_| ());
            if self.members.all.values().any(Watched::is_bearing) {
                self.discovery.lively_until = now.plus(tuning::discovery::FORKING_FOR);
            }
            self.roll_call();
            self.discovery.roll_call.note_answered(now);
        }
        arrived
    }

    /// Lets go of members that a debugger may be about to trace.
    fn make_way(&mut self, now: Moment, census: &Census) {
        for named in census.named() {
            let id = self.discovery.namespaces.id_of(named);
            if let Some(until) =
                self.members.all.get_mut(&id).and_then(|member| member.make_way(now))
            {
                self.members.set_due(id, until);
            }
        }
    }

    /// Looks at all members that are due.
    fn step_members(&mut self, mut now: Moment, crowd: Nanos) {
        while let Some(due) = self.members.next_due() {
            if due > now {
                now = time::now();
            }
            let Some(taken) = self.members.take_due(now) else { break };
            deadline::renew();
            // Other entries of the same member were overtaken.
            if let Some(id) = taken {
                self.step_member(id, now, crowd);
            }
        }
    }

    pub(super) fn step_member(&mut self, id: u32, now: Moment, crowd: Nanos) {
        let separates = self.separates();
        let Some(member) = self.members.all.get_mut(&id) else { return };
        if member.may_be_bereaved() && separates && self.apart.is_open() {
            // However often the observer looks: what another look finds again would be its own.
            return self.members.set_due(id, now.plus(tuning::accounting::CHILD_CLASS_WAIT));
        }
        let stepped = member.step(now, crowd);
        self.traffic.note(member.seen_moving());
        if self.class.yields() {
            self.traffic.note_operations(now, self.class.meter(Resource::Metadata).total());
        }
        let next = match stepped {
            Ok(next) => next,
            Err(gone) => return self.part(id, gone),
        };
        if member.bears_outside() {
            let until = member.moved_at().plus(tuning::discovery::FORKING_FOR);
            self.discovery.lively_until = self.discovery.lively_until.max(until);
        }
        let (bereaved, is_held) = (member.may_be_bereaved(), member.is_held());
        let apart = bereaved && self.apart.inquire(separates);
        let due = match bereaved {
            true if apart => now.plus(tuning::accounting::CHILD_CLASS_WAIT),
            true => now.plus(Nanos(1)),
            false if is_held => crowd::batched(next, now, crowd),
            false => next,
        };
        self.members.set_due(id, due);
        if is_held {
            self.members.note_held(id);
        }
        if bereaved && !apart {
            // Before the member itself is looked at again: one may have ended.
            self.members.look_at(now, |member| member.parent == id, |_| ());
        }
    }

    fn follow_limits(&mut self) {
        let changes = self.class.changes().load(Ordering::Acquire);
        if changes != std::mem::replace(&mut self.changes, changes) {
            self.look_now(Watched::limits_changed);
        }
    }
}
