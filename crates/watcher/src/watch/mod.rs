//! A class under watch: its members and their descendants.

mod child_classes;
mod joining;
mod members;
mod reaping;
mod step;
mod traffic;

use std::collections::HashMap;

use child_classes::ChildClasses;
use discnice_ledger::Class;
use discnice_ledger::primitive::Ordering;
use discnice_sys::block::BlockId;
use discnice_sys::{deadline, process, time};
use discnice_units::Moment;

use crate::discovery::pid_namespace::{self, Namespaces};
use crate::discovery::roll_call::RollCall;
use crate::helpers::Helpers;
use crate::member::Watched;
use crate::network::Network;
use crate::writeback::fuse_writes::FuseWrites;
pub use child_classes::{Child, Ended};
pub use joining::enlist;
use members::Members;
use traffic::Traffic;

/// A class under watch. Releases all processes when dropped.
#[derive(Debug)]
pub struct Watch {
    class: &'static Class,
    block: BlockId,
    members: Members,
    discovery: Discovery,
    /// Changes of the limits that members have followed.
    changes: u32,
    /// What members write through daemons.
    through: FuseWrites,
    traffic: Traffic,
    network: Network,
    apart: ChildClasses,
    helpers: Helpers,
}

/// How members of one class are found.
#[derive(Debug)]
struct Discovery {
    /// `DISCNICE=block:nonce`, as programs of the class have it in their environment.
    mark: Vec<u8>,
    namespaces: Namespaces,
    /// All members, and ended ones with process groups that still exist, and since when they are
    /// members: groups and sessions are named after them.
    ever: HashMap<u32, Moment>,
    roll_call: RollCall,
    /// [`Watcher::arrivals`](discnice_ledger::outside::Watcher::arrivals) at the last look.
    arrivals: u32,
    /// Whether those that were born before it began have been looked for.
    has_begun: bool,
    /// Until when children are likely to be born that only the census finds.
    lively_until: Moment,
}

impl Discovery {
    /// Begins with no member of the class that lies in this block.
    fn new(class: &Class, block: BlockId) -> Self {
        Self {
            mark: pid_namespace::mark(class, block),
            namespaces: Namespaces::default(),
            ever: HashMap::new(),
            roll_call: RollCall::default(),
            arrivals: class.watcher().arrivals(),
            has_begun: false,
            lively_until: Moment::FIRST,
        }
    }
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
            members: Members::default(),
            discovery: Discovery::new(class, block),
            changes: class.changes().load(Ordering::Acquire),
            through: FuseWrites::default(),
            traffic: Traffic::default(),
            network: Network::default(),
            apart: ChildClasses::default(),
            helpers,
        }
    }

    /// Returns true if no process is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.all.is_empty() && !self.members.is_leaving()
    }

    /// How many are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.all.len()
    }

    /// Looks for new members at once, as a process may have been added to the class.
    pub fn look_for_members(&mut self) {
        self.discovery.roll_call.hurry();
    }

    /// Until when children are likely to be born that only the census finds.
    #[must_use]
    pub fn lively_until(&self) -> Moment {
        let lively_until = self.discovery.lively_until;
        let is_lively = lively_until > Moment::FIRST && self.has_members_outside();
        if is_lively { lively_until } else { Moment::FIRST }
    }

    /// Returns true if a member may have children that only the census finds.
    #[must_use]
    pub fn has_members_outside(&self) -> bool {
        self.members.all.values().any(Watched::bears_outside)
    }

    /// Returns true if a process is held, or not wholly let go.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.members.holds()
    }

    /// Returns true if a process became a member, or began to execute a program, since the last
    /// step.
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        self.class.watcher().arrivals() != self.discovery.arrivals
    }

    /// The processes that are watched.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.members.all.keys().copied()
    }

    /// All members stand until then, for the memory that they have.
    pub fn rest(&mut self, until: Moment) {
        self.look_now(|member| member.rest(until));
    }

    /// No member need stand for that any more.
    pub fn wake(&mut self) {
        self.look_now(Watched::wake);
    }

    fn look_now(&mut self, change: impl Fn(&mut Watched)) {
        self.members.look_at(time::now(), |_| true, change);
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        if self.holds() {
            self.members.tend();
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
        self.network.release(&self.members.all);
        // What cannot be let go at once (a thread in an uninterruptible wait) the kernel lets go
        // when this process ends; a process that goes on waits for it here, a moment.
        let mut all = self.members.take_all();
        all.iter_mut().for_each(Watched::leave);
        for (id, _) in self.discovery.ever.drain() {
            self.helpers.lineage.remove(id, self.block);
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

#[cfg(test)]
mod tests;
