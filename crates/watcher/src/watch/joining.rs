//! Which processes belong to a class: those that it lists and that are shown to be the ones it lists, and whatever
//! descends from them.

use std::rc::Rc;

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{Mechanism, Reason};
use discnice_ledger::{Class, MemberId, State};
use discnice_sys::procfs::{self, Stat};
use discnice_sys::{deadline, process, time};

use super::Watch;
use super::reaping::reaper;
use crate::discovery::newcomer::{Newcomer, is_helper};
use crate::discovery::pid_namespace;
use crate::member::Watched;
use crate::process::{Pinned, Refusal, is_hidden, lives, pin_listed, pin_now};
use crate::tuning;

impl Watch {
    /// All that the class lists.
    pub(super) fn roll_call(&mut self) {
        self.meet_strangers();
        self.forget_groups();
        let known = |id| self.members.all.contains_key(&id) || self.discovery.namespaces.has(id);
        let listed: Vec<(MemberId, u32)> = self
            .class
            .living_slots(|id| !known(id) && process::exists(id))
            .map(|(slot, member)| (slot, member.process()))
            .collect();
        for (slot, id) in listed {
            deadline::renew();
            let pinned = pin_listed(id.cast_signed());
            if matches!(pinned, Err(Refusal::Executing(_))) {
                self.discovery.roll_call.note_unseen();
            }
            if let Ok(pinned) = pinned
                && let Some(stat) = procfs::stat(id)
            {
                let found = stat.into();
                if self.is_listed(slot, &found) {
                    self.adopt(pinned, (slot, id), Reason::None, stat.parent);
                } else if found.is_unseen() {
                    self.discovery.roll_call.note_unseen();
                } else {
                    self.free_if_dead(slot, &stat);
                    self.note_if_hidden(slot, &pinned);
                }
            }
        }
        self.class.watcher().answer(self.discovery.arrivals);
    }

    /// Notes for the user a process that is neither charged nor readable: a watcher that was
    /// started in another group (newgrp(1)) may not look (ptrace(2), access mode checking).
    fn note_if_hidden(&self, slot: MemberId, listed: &Pinned) {
        if let Some(member) = self.class.member(slot, listed.id())
            && matches!(member.state(), State::Executing | State::Outside)
            && self.started(slot, listed.id()).is_none_or(|one| one == listed.process.started)
            && let Some(held) = self.class.held(slot)
            && is_hidden(listed.id())
        {
            held.begin(member, listed.process.started);
            held.set_how(None, Reason::Hidden);
        }
    }

    /// Takes in processes in namespaces of their own that have given the class their number since.
    fn meet_strangers(&mut self) {
        for stranger in self.discovery.namespaces.strangers() {
            if let Some((slot, _)) = self.class.listed(stranger.number)
                && !self.discovery.namespaces.has(stranger.number)
                && let Ok(pinned) = pin_now(stranger.id.cast_signed())
            {
                self.discovery.namespaces.note_listed(&stranger);
                self.adopt(pinned, (slot, stranger.number), Reason::None, stranger.parent);
            }
        }
    }

    /// Whether the process that has the number of this slot here is shown to be the one that the slot lists: a number
    /// alone may be a later process's, or mean another one in a PID namespace.
    fn is_listed(&self, slot: MemberId, found: &Newcomer) -> bool {
        match self.started(slot, found.stat.id) {
            Some(started) => started == found.stat.started,
            None => {
                self.class.member(slot, found.stat.id).is_some()
                    && (self.is_named(&found.stat)
                        || self.bore(found)
                        || pid_namespace::shows_membership(found, self.block, &self.discovery.mark))
            }
        }
    }

    /// Returns when the process started that a slot lists, if a watcher, or the process that listed
    /// it, has noted that.
    fn started(&self, slot: MemberId, id: u32) -> Option<u64> {
        let member = self.class.member(slot, id)?;
        Some(self.class.held(slot)?.of(member)?.started)
    }

    /// Frees the slot of a process that has ended, as another one has its number. Only attached
    /// processes and their descendants are listed by the numbers that they have here for sure.
    fn free_if_dead(&self, slot: MemberId, found: &Stat) {
        if let Some(member) = self.class.member(slot, found.id)
            && member.state() == State::Outside
            && self.started(slot, found.id).is_some_and(|started| started != found.started)
        {
            member.release();
        }
    }

    /// Takes those among the newcomers that belong to the class; whether there were any.
    pub fn meet(&mut self, newcomers: &[Rc<Newcomer>]) -> bool {
        let before = self.members.all.len();
        // Those that announced themselves since the last look come first: newcomers may be their children.
        self.answer_arrivals(time::now());
        for newcomer in newcomers {
            deadline::renew();
            self.take(newcomer);
        }
        if self.discovery.namespaces.has_strangers() {
            self.meet_strangers();
        }
        self.members.all.len() > before
    }

    /// Takes a newcomer if it belongs to the class and no library of ours will register it.
    fn take(&mut self, newcomer: &Newcomer) {
        let (stat, id, parent) = (&newcomer.stat, newcomer.stat.id, newcomer.stat.parent);
        if self.members.all.contains_key(&id) {
            return;
        }
        self.disown(id);
        let seen = self.class.listed(id).map(|(slot, _)| slot);
        seen.into_iter().for_each(|slot| self.free_if_dead(slot, stat));
        let listed = seen
            .filter(|slot| !self.discovery.namespaces.has(id) && self.is_listed(*slot, newcomer));
        if listed.is_none() {
            let is_ours = || id == process::id() || is_helper(newcomer);
            let is_none = !self.is_kin(newcomer) || self.is_anothers(newcomer) || is_ours();
            let bears_outside = self.bears_outside(parent, newcomer);
            // It is met again.
            if is_none || newcomer.is_unseen() {
                return;
            }
            if !bears_outside {
                return self.discovery.namespaces.meet(newcomer);
            }
            if self.sets_apart(stat) {
                return;
            }
        }
        // Though it may have ended since it was seen: the next newcomer may be its child.
        self.note_kin(id);
        let pin = if listed.is_some() { pin_listed } else { pin_now };
        let pinned = match pin(id.cast_signed()) {
            Ok(pinned) => pinned,
            Err(refusal) => {
                if let Refusal::Executing(_) = refusal {
                    newcomer.note_unseen();
                }
                return;
            }
        };
        if let Some(slot) = listed {
            self.adopt(pinned, (slot, id), Reason::None, parent);
        } else if let Some(slot) = self.list(&pinned, seen) {
            self.adopt(pinned, (slot, id), Reason::Descendant, parent);
        }
    }

    /// Lists a descendant, unless it has registered itself since the slot in which it was listed was `seen`: what it has
    /// charged itself would be forgotten, and charged again.
    pub(super) fn list(&self, pinned: &Pinned, seen: Option<MemberId>) -> Option<MemberId> {
        let now = self.class.listed(pinned.id()).map(|(slot, _)| slot);
        if now.is_some() && now != seen {
            return None;
        }
        enlist(self.class, pinned, Charged::default(), Reason::Descendant)
    }

    /// Returns true if our library does not enter children of this parent, as it is now.
    fn bears_outside(&mut self, parent: u32, child: &Newcomer) -> bool {
        let Some(parent) = self.members.all.get_mut(&parent) else { return true };
        parent.follow_role();
        parent.bears_outside() || parent.is_bearing() || child.is_apart()
    }

    /// Whether a process descends from a member, as far as can be seen. One that our library is in and
    /// that shows nothing of this is found by the next roll call.
    fn is_kin(&self, newcomer: &Newcomer) -> bool {
        self.is_named(&newcomer.stat)
            || self.is_orphan(newcomer)
            || newcomer.carries(&self.discovery.mark)
    }

    /// Whether a member bore it, or an ancestor of it that has ended, and our library, which would register it, is not
    /// in it.
    fn is_orphan(&self, newcomer: &Newcomer) -> bool {
        self.bore(newcomer) && !pid_namespace::maps(newcomer, self.block)
    }

    /// Whether the last of those that bore it and live is a member, or one of those that have ended was.
    pub(super) fn bore(&self, newcomer: &Newcomer) -> bool {
        for ancestor in &newcomer.ancestors {
            // A member from before this fork only had the same number.
            if self.discovery.ever.get(&ancestor.id).is_some_and(|since| *since >= ancestor.born) {
                return true;
            }
            if ancestor.id == newcomer.stat.parent || lives(ancestor.id) {
                return false;
            }
        }
        false
    }

    /// Whether its parent is a member, or its group or session is named after one.
    fn is_named(&self, stat: &Stat) -> bool {
        // A group and a session are named after the process that made them, and no other process
        // can get its number while they exist.
        let named = |name: u32| self.discovery.ever.contains_key(&name);
        self.members.all.contains_key(&stat.parent) || named(stat.group) || named(stat.session)
    }

    /// Numbers of members that have ended, and that no process group has any more, may be given to others.
    fn forget_groups(&mut self) {
        let (members, all) = (&self.members.all, self.discovery.ever.keys().copied());
        let gone = all.filter(|id| !members.contains_key(id) && !process::group_exists(*id));
        for id in gone.collect::<Vec<_>>() {
            self.disown(id);
        }
    }

    /// No process is kin by this number.
    pub(super) fn disown(&mut self, id: u32) {
        if self.discovery.ever.remove(&id).is_some() {
            self.helpers.lineage.remove(id, self.block);
        }
    }

    fn adopt(&mut self, pinned: Pinned, slot: (MemberId, u32), reason: Reason, parent: u32) {
        let id = pinned.id();
        let watched = Watched::new(pinned, self.class, slot, reason, self.helpers.clone());
        let Some(mut watched) = watched else { return };
        watched.parent = parent;
        if !self.members.all.contains_key(&parent) {
            // That may have ended since it was seen, and it has another one, which will wait for it.
            watched.parent = reaper(&watched);
        }
        let parent = watched.parent;
        if let Some(parent) = self.members.all.get_mut(&parent) {
            parent.expect_children();
            if parent.is_paused_itself() {
                watched.inherit_pause();
            }
        }
        if self.members.all.values().any(|member| member.parent == id) {
            watched.expect_children();
        }
        if watched.bears_outside() {
            self.discovery.lively_until = time::now().plus(tuning::discovery::FORKING_FOR);
        }
        self.note_kin(id);
        self.members.add(watched);
    }

    /// Notes that a process is of the class, so that its children are.
    fn note_kin(&mut self, id: u32) {
        self.discovery.ever.insert(id, time::now());
        self.helpers.lineage.add(id, self.block);
    }
}

/// Lists a process that our library will never register; its account up to `charged` is not charged
/// to this class.
#[must_use]
pub fn enlist(
    class: &Class,
    pinned: &Pinned,
    charged: Charged,
    reason: Reason,
) -> Option<MemberId> {
    let (slot, member) = class.register(pinned.id(), charged, process::exists)?;
    member.set_name(&crate::process::name(pinned.id()));
    if let Some(held) = class.held(slot) {
        held.begin(member, pinned.process.started);
        held.set_before(charged);
        held.set_how(Some(Mechanism::Ptrace), reason);
    }
    member.set_state(State::Outside);
    Some(slot)
}
