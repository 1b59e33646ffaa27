//! A class under watch: its members and their descendants.

mod child_classes;
mod joining;
mod reaping;
mod traffic;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use child_classes::Apart;
use discnice_ledger::Class;
use discnice_ledger::primitive::Ordering;
use discnice_sys::block::BlockId;
use discnice_sys::{deadline, process, time};
use discnice_units::Nanos;

use crate::discovery::census::Census;
use crate::discovery::pid_namespace::{self, Stranger};
use crate::helpers::Helpers;
use crate::member::Watched;
use crate::others::uplink::Uplink;
use crate::tuning;
use crate::writeback::fuse_daemons::Through;
pub use child_classes::{Child, Ended};
pub use joining::enlist;
use traffic::Traffic;

/// A class under watch. Releases all processes when dropped.
#[derive(Debug)]
pub struct Watch {
    class: &'static Class,
    block: BlockId,
    /// `DISCNICE=block:nonce`, as programs of the class have it in their environment.
    mark: Vec<u8>,
    members: HashMap<u32, Watched>,
    /// Processes in namespaces of their own that are not listed yet.
    strangers: Vec<Stranger>,
    /// Numbers that the class lists and that mean such members, with what their ids are.
    inside: HashMap<u32, u32>,
    /// Held no longer, but not yet let go.
    leaving: Vec<Watched>,
    /// All members, and ended ones with process groups that still exist, and since when they are
    /// members: groups and sessions are named after them.
    ever: HashMap<u32, Nanos>,
    queue: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Whether those that were born before it began have been looked for.
    begun: bool,
    /// Processes that are held, or not wholly let go.
    held: HashSet<u32>,
    lively_until: Nanos,
    roll_call_at: Nanos,
    /// How far looks at one idle process were apart at the last step.
    crowd: Nanos,
    /// Roll calls of a crowd since a process last joined.
    roll_calls: u32,
    changes: u32,
    /// [`Watcher::arrivals`](discnice_ledger::outside::Watcher::arrivals) at the last look.
    arrivals: u32,
    /// What members write through daemons.
    through: Through,
    traffic: Traffic,
    uplink: Uplink,
    apart: Apart,
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
            mark: pid_namespace::mark(class, block),
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
            crowd: Nanos(0),
            roll_calls: 0,
            changes: class.changes().load(Ordering::Acquire),
            arrivals: class.watcher().arrivals(),
            through: Through::default(),
            traffic: Traffic::default(),
            uplink: Uplink::default(),
            apart: Apart::default(),
            helpers,
        }
    }

    /// Returns true if no process is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.leaving.is_empty()
    }

    /// How many are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Looks for new members at once, as a process may have been added to the class.
    pub fn look_for_members(&mut self) {
        (self.roll_call_at, self.roll_calls) = (Nanos(0), 0);
    }

    /// Until when children are likely to be born that only the census finds.
    #[must_use]
    pub fn lively_until(&self) -> Nanos {
        let lively = self.lively_until.0 > 0 && self.has_members_outside();
        if lively { self.lively_until } else { Nanos(0) }
    }

    /// Returns true if a member may have children that only the census finds.
    #[must_use]
    pub fn has_members_outside(&self) -> bool {
        self.members.values().any(Watched::bears_outside)
    }

    /// Returns true if a process is held, or not wholly let go.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty() || !self.leaving.is_empty()
    }

    /// Returns true if a process became a member, or began to execute a program, since the last
    /// step.
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
            member.set_due(now);
            self.queue.push(Reverse((now, *id)));
        }
    }

    /// Does what is due, of so many processes that are watched in all; returns when to be called again.
    pub fn step(&mut self, watched: usize, census: &mut Census) -> Nanos {
        let (now, crowd) = (time::now(), apart(watched));
        self.crowd = crowd;
        self.follow_limits();
        if !self.answer_arrivals(now) && now >= self.roll_call_at {
            self.roll_call();
            self.roll_calls = tuning::discovery::ROLL_CALL_DOUBLINGS.min(self.roll_calls + 1);
            self.roll_call_at =
                now.plus(tuning::discovery::ROLL_CALL.max(Nanos(crowd.0 << self.roll_calls)));
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
        // After known members: to look for others may take its time.
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

    /// If processes have announced themselves, takes those, and looks at members that began to execute a program; whether
    /// any have.
    fn answer_arrivals(&mut self, now: Nanos) -> bool {
        let arrived = self.has_arrivals();
        if arrived {
            self.arrivals = self.class.watcher().arrivals();
            self.welcome(now);
            self.roll_call();
            self.roll_calls = 0;
            self.roll_call_at = now.plus(tuning::discovery::ROLL_CALL.max(self.crowd));
        }
        arrived
    }

    /// Lets go of members that a debugger may be about to trace.
    fn make_way(&mut self, now: Nanos, census: &Census) {
        for named in census.named() {
            let id = self.inside.get(&named).copied().unwrap_or(named);
            if let Some(member) = self.members.get_mut(&id)
                && let Some(until) = member.make_way(now)
            {
                member.set_due(until);
                self.queue.push(Reverse((until, id)));
            }
        }
    }

    /// Looks at all members that are due.
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
            if self.members.get(&id).is_some_and(|member| member.due() == due) {
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
        let separates = self.separates();
        let Some(member) = self.members.get_mut(&id) else { return };
        let stepped = member.step(now, crowd);
        self.traffic.note(member.seen_moving());
        match stepped {
            Ok(next) => {
                if member.bears_outside() {
                    self.lively_until = self
                        .lively_until
                        .max(member.moved_at().plus(tuning::discovery::FORKING_FOR));
                }
                let bereaved = member.may_be_bereaved();
                let apart = bereaved && self.apart.mourn(separates);
                member.set_due(match bereaved {
                    true if apart => now.plus(tuning::accounting::CHILD_CLASS_WAIT),
                    true => now.plus(Nanos(1)),
                    false => batched(next, now, crowd),
                });
                self.queue.push(Reverse((member.due(), id)));
                if member.is_held() {
                    self.held.insert(id);
                }
                if bereaved && !apart {
                    self.look_at_children(id, now);
                }
            }
            Err(gone) => self.part(id, gone),
        }
    }

    /// Has the children of a member looked at, before the member itself is again: one may have ended.
    fn look_at_children(&mut self, id: u32, now: Nanos) {
        for (child, member) in self.members.iter_mut().filter(|(_, member)| member.parent == id) {
            member.set_due(now);
            self.queue.push(Reverse((now, *child)));
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
            member.set_due(now);
            self.queue.push(Reverse((now, *id)));
        }
    }
}

impl AsMut<Self> for Watch {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.uplink.release(&self.members);
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
    Nanos(tuning::looks::CROWD.0 * watched as u64)
}

/// How far batches of such looks are apart.
#[must_use]
pub fn batch(watched: usize) -> Nanos {
    Nanos(apart(watched).0 / tuning::looks::CROWD_BATCHES)
}

fn batched(next: Nanos, now: Nanos, crowd: Nanos) -> Nanos {
    let grain = crowd.0 / tuning::looks::CROWD_BATCHES;
    if grain < 1_000_000 || next.0 < now.0 + grain {
        return next;
    }
    Nanos(next.0.div_ceil(grain) * grain)
}

#[cfg(test)]
mod tests;
