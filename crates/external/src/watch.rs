//! A class under watch: its members, and whoever descends from them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fs;

use discnice_budget::member::Charged;
use discnice_budget::outside::{Mechanism, Reason};
use discnice_budget::primitive::Ordering;
use discnice_budget::{Class, MemberId, State};
use discnice_sys::procfs::{self, Stat};
use discnice_sys::{process, time};
use discnice_units::Nanos;

use crate::census::{Newcomer, Reader};
use crate::helpers::Helpers;
use crate::member::{Gone, Watched};
use crate::process::{Pinned, pin};

/// New processes are looked for this often.
const CENSUS: Nanos = Nanos::from_millis(2);
/// Without members, and with idle ones only.
const IDLE_CENSUS: Nanos = Nanos::from_millis(10);
/// All slots of the class are looked through this often, should a newcomer have been missed.
const ROLL_CALL: Nanos = Nanos(Nanos::SECOND.0);
/// What one look at an idle process costs, in nanoseconds, times a hundred and fifty: so that idle
/// crowds take less than a hundredth of a processor.
const CROWD: u64 = 3_000 * 150;
/// So long after anybody was born or moved bytes, newcomers are looked for more often.
const LIVELY: Nanos = Nanos(Nanos::SECOND.0);

/// A class under watch. Ends holding everybody when dropped.
#[derive(Debug)]
pub struct Watch {
    class: &'static Class,
    /// `segment:nonce`, as programs of the class have it in their environment.
    mark: Vec<u8>,
    members: HashMap<u32, Watched>,
    /// Those of them that are held, or are being let go.
    held: HashSet<u32>,
    /// Held no longer, but not yet let go.
    leaving: Vec<Watched>,
    /// All that were ever members: sessions and process groups may be named after them.
    ever: HashSet<u32>,
    queue: BinaryHeap<Reverse<(Nanos, u32)>>,
    census: Reader,
    census_at: Nanos,
    lively_until: Nanos,
    roll_call_at: Nanos,
    changes: u32,
    /// [`Watcher::arrivals`](discnice_budget::outside::Watcher::arrivals) at the last look.
    arrivals: u32,
    helpers: Helpers,
}

impl Watch {
    /// Begins to watch a class that lies in this shared-memory segment.
    #[must_use]
    pub fn new(class: &'static Class, segment: i32, helpers: Helpers) -> Self {
        Self {
            class,
            mark: format!("{segment:x}:{:x}", class.nonce()).into_bytes(),
            members: HashMap::new(),
            held: HashSet::new(),
            leaving: Vec::new(),
            ever: HashSet::new(),
            queue: BinaryHeap::new(),
            census: Reader::new(helpers.census.clone()),
            census_at: Nanos(0),
            lively_until: Nanos(0),
            roll_call_at: Nanos(0),
            changes: class.changes().load(Ordering::Acquire),
            arrivals: class.watcher().arrivals(),
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
        self.roll_call_at = Nanos(0);
        self.census_at = Nanos(0);
    }

    /// Does what is due; returns when to be called again.
    pub fn step(&mut self) -> Nanos {
        let now = time::now();
        self.follow_limits();
        let arrivals = self.class.watcher().arrivals();
        let arrived = arrivals != std::mem::replace(&mut self.arrivals, arrivals);
        if arrived {
            self.welcome(now);
        }
        if arrived || now >= self.roll_call_at {
            self.roll_call();
            self.roll_call_at = now.plus(ROLL_CALL);
        }
        self.leaving.retain_mut(|member| {
            member.let_go();
            member.is_letting_go()
        });
        self.step_members(now);
        // After those who are known: to look for others may take its time.
        if now >= self.census_at {
            self.look_for_newcomers();
            let lively = now < self.lively_until || self.census.is_behind();
            self.census_at = now.plus(if lively { CENSUS } else { IDLE_CENSUS });
        }
        let next = self.queue.peek().map_or(self.roll_call_at, |Reverse((due, _))| *due);
        let next = next.min(self.census_at).min(self.roll_call_at);
        if self.leaving.is_empty() { next } else { next.min(now.plus(Nanos(500_000))) }
    }

    /// Looks at all members for whom it is time.
    fn step_members(&mut self, mut now: Nanos) {
        while let Some(Reverse((due, id))) = self.queue.peek().copied() {
            if due > now {
                now = time::now();
                if due > now {
                    break;
                }
            }
            self.queue.pop();
            // Other entries of the same member were overtaken.
            if self.members.get(&id).is_some_and(|member| member.due == due) {
                self.step_member(id, now);
            }
        }
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        let members = &mut self.members;
        self.held.retain(|id| {
            members.get_mut(id).is_some_and(|member| {
                member.tend();
                member.is_held()
            })
        });
        self.leaving.iter_mut().for_each(Watched::tend);
    }

    fn step_member(&mut self, id: u32, now: Nanos) {
        let crowd = Nanos(CROWD * self.members.len() as u64);
        let Some(member) = self.members.get_mut(&id) else { return };
        match member.step(now, crowd) {
            Ok(next) => {
                if member.bears_outside() {
                    self.lively_until = self.lively_until.max(member.moved_at().plus(LIVELY));
                }
                member.due = batched(next, now, crowd);
                if member.is_held() {
                    self.held.insert(id);
                }
                self.queue.push(Reverse((member.due, id)));
            }
            Err(gone) => self.part(id, gone),
        }
    }

    fn part(&mut self, id: u32, gone: Gone) {
        let Some(member) = self.members.remove(&id) else { return };
        if gone == Gone::Ended
            && let Some(parent) = self.members.get_mut(&member.parent)
        {
            parent.inherit(member.account());
        }
        if gone == Gone::Detached {
            // Its later children are as free as it is.
            self.ever.remove(&id);
        } else {
            // An attached process has no library in it that would give its slot back.
            if let Some((_, slot)) = self.class.listed(id)
                && slot.state() == State::Outside
            {
                slot.release();
            }
        }
        if member.is_letting_go() {
            self.leaving.push(member);
        }
    }

    fn follow_limits(&mut self) {
        let changes = self.class.changes().load(Ordering::Acquire);
        if changes != std::mem::replace(&mut self.changes, changes) {
            let now = time::now();
            for (id, member) in &mut self.members {
                member.limits_changed();
                member.due = now;
                self.queue.push(Reverse((now, *id)));
            }
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
        let known = |id| self.members.contains_key(&id);
        let listed: Vec<(MemberId, u32)> = self
            .class
            .living_slots(|id| !known(id) && process::exists(id))
            .map(|(slot, member)| (slot, member.process()))
            .collect();
        for (slot, id) in listed {
            if let Ok(pinned) = pin(id.cast_signed()) {
                let parent = procfs::stat(id).map_or(0, |stat| stat.parent);
                self.adopt(pinned, slot, Reason::None, parent);
            }
        }
    }

    fn look_for_newcomers(&mut self) {
        for found in self.census.newcomers() {
            let Stat { id, parent, .. } = found.stat;
            if id == process::id() || self.members.contains_key(&id) {
                continue;
            }
            self.ever.remove(&id);
            if let Some((slot, _)) = self.class.listed(id) {
                if let Ok(pinned) = pin(id.cast_signed()) {
                    self.adopt(pinned, slot, Reason::None, parent);
                }
            } else if self.belongs(&found)
                && let Ok(pinned) = pin(id.cast_signed())
                && let Some(slot) =
                    enlist(self.class, &pinned, Charged::default(), Reason::Descendant)
            {
                self.adopt(pinned, slot, Reason::Descendant, parent);
            }
        }
    }

    /// Whether a process that is not listed descends from a member all the same.
    fn belongs(&self, found: &Newcomer) -> bool {
        let stat = found.stat;
        match self.members.get(&stat.parent) {
            Some(parent) => parent.bears_outside() || found.is_apart(),
            None => {
                // A group and a session are named after the process that made them, and nobody
                // else can get its number while they exist.
                let named = |name: u32| self.ever.contains(&name);
                named(stat.group) || named(stat.session) || found.carries(&self.mark)
            }
        }
    }

    fn adopt(&mut self, pinned: Pinned, slot: MemberId, reason: Reason, parent: u32) {
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
        self.lively_until = time::now().plus(LIVELY);
        self.ever.insert(id);
        self.members.insert(id, watched);
        self.queue.push(Reverse((Nanos(0), id)));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // What cannot be let go at once (a thread in an uninterruptible wait) the kernel lets go
        // when this process ends; a process that goes on waits for it here, a moment.
        let mut all: Vec<Watched> = self.members.drain().map(|(_, member)| member).collect();
        all.append(&mut self.leaving);
        for _ in 0..100 {
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

/// Many that do nothing are looked at in few batches: waking up costs more than looking.
fn batched(next: Nanos, now: Nanos, crowd: Nanos) -> Nanos {
    let grain = crowd.0 / 16;
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
