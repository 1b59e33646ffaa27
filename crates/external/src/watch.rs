//! A class under watch: its members, and whoever descends from them.

mod others;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fs;
use std::rc::Rc;

use discnice_budget::member::Charged;
use discnice_budget::outside::{Mechanism, Reason};
use discnice_budget::primitive::Ordering;
use discnice_budget::{Class, MemberId, State};
use discnice_sys::block::BlockId;
use discnice_sys::procfs::{self, Stat};
use discnice_sys::{deadline, process, time};
use discnice_units::Nanos;

use crate::census::{Census, Newcomer};
use crate::helpers::Helpers;
use crate::member::{Gone, Watched};
use crate::number::{self, Stranger};
use crate::process::{Pinned, is_hidden, lives, pin};
use crate::served::Through;
use others::Traffic;

/// All slots of the class are looked through this often, should a newcomer have been missed.
const ROLL_CALL: Nanos = Nanos(Nanos::SECOND.0);
/// In a crowd less often, and each time half as often as the last until somebody joins, this many times: whoever
/// does says so.
const HALVINGS: u32 = 3;
/// What one look at an idle process costs, in nanoseconds, times two hundred: so that idle
/// crowds take less than a hundredth of a processor.
const CROWD: u64 = 3_000 * 200;
/// Many that do nothing are looked at in so many batches: waking up costs more than looking.
const BATCHES: u64 = 16;
/// So long after anybody was born or moved bytes whose children only the census finds, it looks more
/// often.
const LIVELY: Nanos = Nanos(Nanos::SECOND.0);

/// A class under watch. Ends holding everybody when dropped.
#[derive(Debug)]
pub struct Watch {
    class: &'static Class,
    block: BlockId,
    /// `DISCNICE=block:nonce`, as programs of the class have it in their environment.
    mark: Vec<u8>,
    members: HashMap<u32, Watched>,
    /// Those in namespaces of their own who are not listed yet.
    strangers: Vec<Stranger>,
    /// Numbers that the class lists and that mean such members, with what their ids are.
    inside: HashMap<u32, u32>,
    /// Held no longer, but not yet let go.
    leaving: Vec<Watched>,
    /// All members, and those that have ended whose process groups still exist, and since when they are members: groups and
    /// sessions are named after them.
    ever: HashMap<u32, Nanos>,
    queue: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Whether those that were born before it began have been looked for.
    begun: bool,
    /// Who is held, or not wholly let go.
    held: HashSet<u32>,
    lively_until: Nanos,
    roll_call_at: Nanos,
    /// How many roll calls of a crowd nobody had joined before.
    roll_calls: u32,
    changes: u32,
    /// [`Watcher::arrivals`](discnice_budget::outside::Watcher::arrivals) at the last look.
    arrivals: u32,
    /// What members write through daemons.
    through: Through,
    traffic: Traffic,
    helpers: Helpers,
}

impl Watch {
    /// Begins to watch a class that lies in this block.
    #[must_use]
    pub fn new(class: &'static Class, block: BlockId, helpers: Helpers) -> Self {
        if deadline::has_begun() {
            // Another one begins when this process is killed, unless that one is stopped.
            class.watcher().set_keeper(std::os::unix::process::parent_id());
        }
        Self {
            class,
            block,
            mark: number::mark(class, block),
            members: HashMap::new(),
            strangers: Vec::new(),
            inside: HashMap::new(),
            leaving: Vec::new(),
            ever: HashMap::new(),
            queue: BinaryHeap::new(),
            begun: false,
            held: HashSet::new(),
            lively_until: Nanos(0),
            roll_call_at: Nanos(0),
            roll_calls: 0,
            changes: class.changes().load(Ordering::Acquire),
            arrivals: class.watcher().arrivals(),
            through: Through::default(),
            traffic: Traffic::default(),
            helpers,
        }
    }

    /// Whether anybody is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.leaving.is_empty()
    }

    /// How many are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Somebody may have been added to the class: look at once.
    pub fn look_for_members(&mut self) {
        (self.roll_call_at, self.roll_calls) = (Nanos(0), 0);
    }

    /// Until when children are likely to be born that only the census finds.
    #[must_use]
    pub fn lively_until(&self) -> Nanos {
        let any = || self.members.values().any(Watched::bears_outside);
        if self.lively_until.0 > 0 && any() { self.lively_until } else { Nanos(0) }
    }

    /// Whether anybody is held, or not wholly let go.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty() || !self.leaving.is_empty()
    }

    /// Whether somebody became a member, or began to execute a program, since the last step.
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        self.class.watcher().arrivals() != self.arrivals
    }

    /// The processes that are watched.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.members.keys().copied()
    }

    /// All members stand until then, for the memory that they have.
    pub fn rest(&mut self, until: Nanos) {
        self.look_now(|member| member.rest(until));
    }

    /// No member need stand for that any more.
    pub fn wake(&mut self) {
        self.look_now(Watched::wake);
    }

    fn look_now(&mut self, change: impl Fn(&mut Watched)) {
        let now = time::now();
        for (id, member) in &mut self.members {
            change(member);
            member.due = now;
            self.queue.push(Reverse((now, *id)));
        }
    }

    /// Does what is due, of so many processes that are watched in all; returns when to be called again.
    pub fn step(&mut self, watched: usize, census: &mut Census) -> Nanos {
        let (now, crowd) = (time::now(), apart(watched));
        self.follow_limits();
        let arrived = self.has_arrivals();
        if arrived {
            self.arrivals = self.class.watcher().arrivals();
            self.welcome(now);
        }
        if arrived || now >= self.roll_call_at {
            self.roll_call();
            self.roll_calls = if arrived { 0 } else { HALVINGS.min(self.roll_calls + 1) };
            self.roll_call_at = now.plus(ROLL_CALL.max(Nanos(crowd.0 << self.roll_calls)));
        }
        if now >= self.lively_until {
            self.lively_until = Nanos(0);
        }
        self.leaving.retain_mut(|member| {
            member.let_go();
            member.is_letting_go()
        });
        self.make_way(now, census);
        self.step_members(now, crowd);
        self.through.follow(now, self.class, &self.helpers.write_back);
        // After those who are known: to look for others may take its time.
        if !std::mem::replace(&mut self.begun, true)
            && let Some((started, id)) = self.members.values().map(Watched::birth).min()
        {
            self.meet(&census.since(now, id, started));
        }
        // Those that the class listed are known by now.
        self.class.watcher().follow_births(census.follows_births());
        let next = self.queue.peek().map_or(self.roll_call_at, |Reverse((due, _))| *due);
        let next = next.min(self.roll_call_at);
        if self.leaving.is_empty() { next } else { next.min(now.plus(Nanos(500_000))) }
    }

    /// Lets go of members that a debugger may be about to trace.
    fn make_way(&mut self, now: Nanos, census: &Census) {
        for named in census.named() {
            let id = self.inside.get(&named).copied().unwrap_or(named);
            if let Some(member) = self.members.get_mut(&id)
                && let Some(until) = member.make_way(now)
            {
                member.due = until;
                self.queue.push(Reverse((until, id)));
            }
        }
    }

    /// Looks at all members for whom it is time.
    fn step_members(&mut self, mut now: Nanos, crowd: Nanos) {
        while let Some(Reverse((due, id))) = self.queue.peek().copied() {
            if due > now {
                now = time::now();
                if due > now {
                    break;
                }
            }
            deadline::renew();
            self.queue.pop();
            // Other entries of the same member were overtaken.
            if self.members.get(&id).is_some_and(|member| member.due == due) {
                self.step_member(id, now, crowd);
            }
        }
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        if !self.holds() {
            return;
        }
        let members = &mut self.members;
        self.held.retain(|id| {
            members.get_mut(id).is_some_and(|member| {
                member.tend();
                member.is_held()
            })
        });
        self.leaving.iter_mut().for_each(Watched::tend);
    }

    fn step_member(&mut self, id: u32, now: Nanos, crowd: Nanos) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let stepped = member.step(now, crowd);
        self.traffic.note(member.seen_moving());
        match stepped {
            Ok(next) => {
                if member.bears_outside() {
                    self.lively_until = self.lively_until.max(member.moved_at().plus(LIVELY));
                }
                let bereaved = member.may_be_bereaved();
                member.due = if bereaved { now.plus(Nanos(1)) } else { batched(next, now, crowd) };
                self.queue.push(Reverse((member.due, id)));
                if member.is_held() {
                    self.held.insert(id);
                }
                if bereaved {
                    self.look_at_children(id, now);
                }
            }
            Err(gone) => self.part(id, gone),
        }
    }

    /// Has the children of a member looked at, before the member itself is again: one may have ended.
    fn look_at_children(&mut self, id: u32, now: Nanos) {
        for (child, member) in self.members.iter_mut().filter(|(_, member)| member.parent == id) {
            member.due = now;
            self.queue.push(Reverse((now, *child)));
        }
    }

    fn part(&mut self, id: u32, gone: Gone) {
        let Some(member) = self.members.remove(&id) else { return };
        self.inside.remove(&member.number());
        if gone == Gone::Ended
            && let Some(parent) = self.members.get_mut(&member.parent)
        {
            parent.inherit(member.account());
        }
        if gone == Gone::Ended {
            // It gives its slot back no more: whoever got its number would be taken for it.
            member.free_slot();
        }
        // Of one that was let go later children are as free as it is.
        if gone == Gone::Detached || !process::group_exists(id) {
            self.disown(id);
        }
        if member.is_letting_go() {
            self.leaving.push(member);
        }
    }

    fn follow_limits(&mut self) {
        let changes = self.class.changes().load(Ordering::Acquire);
        if changes != std::mem::replace(&mut self.changes, changes) {
            self.look_now(Watched::limits_changed);
        }
    }

    /// Members that began to execute a program are looked at now.
    fn welcome(&mut self, now: Nanos) {
        for (id, member) in self.members.iter_mut().filter(|(_, member)| member.has_changed()) {
            member.due = now;
            self.queue.push(Reverse((now, *id)));
        }
    }

    /// All that the class lists.
    fn roll_call(&mut self) {
        self.meet_strangers();
        self.forget_groups();
        let known = |id| self.members.contains_key(&id) || self.inside.contains_key(&id);
        let listed: Vec<(MemberId, u32)> = self
            .class
            .living_slots(|id| !known(id) && process::exists(id))
            .map(|(slot, member)| (slot, member.process()))
            .collect();
        for (slot, id) in listed {
            if let Ok(pinned) = pin(id.cast_signed())
                && let Some(stat) = procfs::stat(id)
            {
                if self.is_listed(slot, &stat.into()) {
                    self.adopt(pinned, (slot, id), Reason::None, stat.parent);
                } else {
                    self.free_if_dead(slot, &stat);
                    self.note_if_hidden(slot, &pinned);
                }
            }
        }
    }

    /// Of one that nobody charges and that may not be looked at, its user is told: a watcher that was started in
    /// another group (newgrp(1)) may not (ptrace(2), access mode checking).
    fn note_if_hidden(&self, slot: MemberId, listed: &Pinned) {
        if let Some(member) = self.class.member(slot, listed.id())
            && matches!(member.state(), State::Executing | State::Outside)
            && self.started(slot, listed.id()).is_none_or(|one| one == listed.process.started)
            && let Some(held) = self.class.held(slot)
            && is_hidden(listed.id())
        {
            held.begin(member, listed.process.started);
            held.set_how(Mechanism::None, Reason::Hidden);
        }
    }

    /// Those in namespaces of their own who have given the class their number since.
    fn meet_strangers(&mut self) {
        self.strangers.retain(Stranger::lives);
        for stranger in self.strangers.clone() {
            if let Some((slot, _)) = self.class.listed(stranger.number)
                && !self.inside.contains_key(&stranger.number)
                && let Ok(pinned) = pin(stranger.id.cast_signed())
            {
                self.strangers.retain(|other| other.id != stranger.id);
                self.inside.insert(stranger.number, stranger.id);
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
                        || number::shows_membership(found, self.block, &self.mark))
            }
        }
    }

    /// When the process started that a slot lists, if a watcher, or whoever listed it, has noted that.
    fn started(&self, slot: MemberId, id: u32) -> Option<u64> {
        let member = self.class.member(slot, id)?;
        Some(self.class.held(slot)?.of(member)?.started)
    }

    /// Frees a slot whose process has ended, as another one has its number. Only attached processes and their descendants
    /// are listed by the numbers that they have here for sure.
    fn free_if_dead(&self, slot: MemberId, found: &Stat) {
        if let Some(member) = self.class.member(slot, found.id)
            && member.state() == State::Outside
            && self.started(slot, found.id).is_some_and(|started| started != found.started)
        {
            member.release();
        }
    }

    /// Takes those among the newcomers who belong to the class; whether there were any.
    pub fn meet(&mut self, newcomers: &[Rc<Newcomer>]) -> bool {
        let before = self.members.len();
        for newcomer in newcomers {
            let (stat, id) = (&newcomer.stat, newcomer.stat.id);
            if self.members.contains_key(&id) {
                continue;
            }
            self.disown(id);
            let parent = stat.parent;
            let listed = self.class.listed(id).map(|(slot, _)| slot);
            listed.into_iter().for_each(|slot| self.free_if_dead(slot, stat));
            if let Some(slot) = listed
                && !self.inside.contains_key(&id)
                && self.is_listed(slot, newcomer)
            {
                if let Ok(pinned) = pin(id.cast_signed()) {
                    self.adopt(pinned, (slot, id), Reason::None, parent);
                }
            } else if !self.is_kin(newcomer) || id == process::id() {
                continue;
            } else if self.bears_outside(parent, newcomer) {
                if let Ok(pinned) = pin(id.cast_signed())
                    && let Some(slot) =
                        enlist(self.class, &pinned, Charged::default(), Reason::Descendant)
                {
                    self.adopt(pinned, (slot, id), Reason::Descendant, parent);
                }
            } else {
                self.strangers.extend(Stranger::meet(id));
            }
        }
        if !self.strangers.is_empty() {
            self.meet_strangers();
        }
        self.members.len() > before
    }

    /// Whether our library does not enter whom this parent bears.
    fn bears_outside(&self, parent: u32, child: &Newcomer) -> bool {
        let parent = self.members.get(&parent);
        parent.is_none_or(|parent| parent.bears_outside() || child.is_apart())
    }

    /// Whether a process descends from a member, as far as can be seen. One that our library is in and
    /// that shows nothing of this is found by the next roll call.
    fn is_kin(&self, newcomer: &Newcomer) -> bool {
        self.is_named(&newcomer.stat) || self.is_orphan(newcomer) || newcomer.carries(&self.mark)
    }

    /// Whether a member bore it, or an ancestor of it that has ended, and our library, which would register it, is not
    /// in it.
    fn is_orphan(&self, newcomer: &Newcomer) -> bool {
        self.bore(newcomer) && !number::maps(newcomer, self.block)
    }

    /// Whether the last of those that bore it and live is a member, or one of those that have ended was.
    fn bore(&self, newcomer: &Newcomer) -> bool {
        for forebear in &newcomer.forebears {
            // Who was a member before this one was born had only the same number.
            if self.ever.get(&forebear.id).is_some_and(|since| *since >= forebear.born) {
                return true;
            }
            if forebear.id == newcomer.stat.parent || lives(forebear.id) {
                return false;
            }
        }
        false
    }

    /// Whether its parent is a member, or its group or session is named after one.
    fn is_named(&self, stat: &Stat) -> bool {
        // A group and a session are named after the process that made them, and nobody else can get
        // its number while they exist.
        let named = |name: u32| self.ever.contains_key(&name);
        self.members.contains_key(&stat.parent) || named(stat.group) || named(stat.session)
    }

    /// Numbers of members that have ended, and that no process group has any more, may be given to others.
    fn forget_groups(&mut self) {
        let (members, all) = (&self.members, self.ever.keys().copied());
        let gone = all.filter(|id| !members.contains_key(id) && !process::group_exists(*id));
        for id in gone.collect::<Vec<_>>() {
            self.disown(id);
        }
    }

    /// No process is kin by this number.
    fn disown(&mut self, id: u32) {
        if self.ever.remove(&id).is_some() {
            self.helpers.kindred.remove(id, self.block);
        }
    }

    fn adopt(&mut self, pinned: Pinned, slot: (MemberId, u32), reason: Reason, parent: u32) {
        let id = pinned.id();
        let watched = Watched::new(pinned, self.class, slot, reason, self.helpers.clone());
        let Some(mut watched) = watched else { return };
        watched.parent = parent;
        if let Some(parent) = self.members.get_mut(&parent) {
            parent.expect_children();
        }
        if self.members.values().any(|member| member.parent == id) {
            watched.expect_children();
        }
        if watched.bears_outside() {
            self.lively_until = time::now().plus(LIVELY);
        }
        self.ever.insert(id, time::now());
        self.helpers.kindred.add(id, self.block);
        self.members.insert(id, watched);
        self.queue.push(Reverse((Nanos(0), id)));
    }
}

impl AsMut<Self> for Watch {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // What cannot be let go at once (a thread in an uninterruptible wait) the kernel lets go
        // when this process ends; a process that goes on waits for it here, a moment.
        let mut all: Vec<Watched> = self.members.drain().map(|(_, member)| member).collect();
        all.append(&mut self.leaving);
        all.iter_mut().for_each(Watched::leave);
        for (id, _) in self.ever.drain() {
            self.helpers.kindred.remove(id, self.block);
        }
        for _ in 0..100 {
            deadline::renew();
            all.retain_mut(|member| {
                member.let_go();
                member.is_letting_go()
            });
            if all.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        self.class.watcher().resign(process::id());
    }
}

/// How far looks at one process that does nothing are apart, of so many that are watched in all.
fn apart(watched: usize) -> Nanos {
    Nanos(CROWD * watched as u64)
}

/// How far batches of such looks are apart.
#[must_use]
pub fn batch(watched: usize) -> Nanos {
    Nanos(apart(watched).0 / BATCHES)
}

fn batched(next: Nanos, now: Nanos, crowd: Nanos) -> Nanos {
    let grain = crowd.0 / BATCHES;
    if grain < 1_000_000 || next.0 < now.0 + grain {
        return next;
    }
    Nanos(next.0.div_ceil(grain) * grain)
}

/// Lists a process that our library will never register, whose account up to `charged` is nobody's
/// business.
#[must_use]
pub fn enlist(
    class: &Class,
    pinned: &Pinned,
    charged: Charged,
    reason: Reason,
) -> Option<MemberId> {
    let (slot, member) = class.register(pinned.id(), charged, process::exists)?;
    let name = fs::read(format!("/proc/{}/comm", pinned.id())).unwrap_or_default();
    member.set_name(name.trim_ascii_end());
    if let Some(held) = class.held(slot) {
        held.begin(member, pinned.process.started);
        held.set_how(Mechanism::Freeze, reason);
    }
    member.set_state(State::Outside);
    Some(slot)
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
