//! Classes are taken under watch, with the threads that their leases and programs need.

use discnice_ledger::policy::Choice;
use discnice_registry::{MappedClass, class};
use discnice_sys::block::BlockId;
use discnice_sys::{process, time};
use discnice_units::Moment;

use super::{WatchedClasses, unmap};
use crate::daemon::fleet_lease::LeaseHolder;
use crate::daemon::policy_program::Adviser;
use crate::daemon::tuning;
use crate::daemon::watched_class::{Sum, WatchedClass};
use crate::process::lives;

impl WatchedClasses {
    /// Watches the class in this block, or looks again for its members; false when there is none.
    pub fn watch(&mut self, block: BlockId) -> bool {
        self.pressure.hurry();
        let known = self.find_or_keep(block);
        let kept = self.kept.iter().map(|kept| kept.mapped);
        let mut mapped = kept.chain(self.taken.iter().map(|(mapped, _)| *mapped));
        let joined = mapped.any(|one| one.block == block && one.class.fleet().is_joined());
        if joined {
            self.hold_lease(block);
        }
        known
    }

    /// Has a thread hold the lease of a class that shares a budget, as long as the class has members, whichever process
    /// watches it.
    pub(super) fn hold_lease(&mut self, block: BlockId) {
        self.tenants.retain(|tenant| !tenant.is_over());
        match self.tenants.iter().find(|one| one.block == block) {
            Some(tenant) if tenant.expect_members() => {}
            // Two of one node would take the lease from each other.
            Some(_) => self.awaited.push(block),
            None => {
                self.helpers.prepare();
                self.tenants.extend(LeaseHolder::start(block, self.settings.addresses));
            }
        }
    }

    /// Has the programs asked of classes that have one, and members.
    pub(super) fn ask_programs(&mut self) {
        self.advisers.retain(|adviser| !adviser.is_over());
        let is_own = |kept: &&WatchedClass| kept.mapped.class.pace().policy == Choice::Program;
        for kept in self.kept.iter().filter(|kept| kept.watched > 0).filter(is_own) {
            let block = kept.mapped.block;
            if self.advisers.iter().all(|one| one.block != block) {
                self.helpers.prepare();
                self.advisers.extend(Adviser::start(block, self.settings.programs));
            }
        }
    }

    /// Whether there is a class in this block; it is watched then.
    pub(super) fn find_or_keep(&mut self, block: BlockId) -> bool {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.mapped.block == block) {
            kept.expect_members(time::now());
            self.sum = Sum::of(&self.kept);
            self.census.hurry();
            return true;
        }
        if self.taken.iter().any(|(mapped, _)| mapped.block == block) {
            return true;
        }
        let Some(mapped) = class::attach(block) else { return false };
        self.keep(mapped);
        true
    }

    pub(super) fn keep(&mut self, mapped: MappedClass) {
        self.keep_or_wait(mapped, time::now().plus(tuning::daemon::DYING));
    }

    /// Watches the class, unless another process does that still lives at `deadline`: `discnice
    /// attach` watches its own.
    pub(super) fn keep_or_wait(&mut self, mapped: MappedClass, deadline: Moment) {
        let now = time::now();
        if mapped.class.watcher().claim(process::id(), now.0, lives) {
            let mut kept = WatchedClass::new(mapped, self.helpers.clone());
            kept.expect_members(now);
            self.kept.push(kept);
            self.sum = Sum::of(&self.kept);
            self.census.hurry();
            // Another policyd of this user, in another session, holds the leases of what it watches.
            if mapped.class.fleet().is_joined() {
                self.hold_lease(mapped.block);
            }
        } else if now < deadline {
            self.taken.push((mapped, deadline));
        } else {
            unmap(mapped);
        }
    }
}
