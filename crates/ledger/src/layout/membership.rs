//! The members of a class and their slots.

use crate::layout::{Class, MEMBERS};
use crate::member::{Charged, Member, MemberId, State};
use crate::outside::{Held, Watcher};
use crate::primitive::Ordering;

/// The first slot in which a process may be listed.
fn first_slot(process: u32) -> usize {
    (process as usize).wrapping_mul(5) % MEMBERS
}

/// Slots that a registration looks at; as many as [`Occupied::is_any_marked`](crate::occupied_slots::Occupied) does.
pub(super) const PROBES: usize = 64;

impl Class {
    /// The members' slots.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// One life of a slot, if it still is that process's.
    #[must_use]
    pub fn member(&self, id: MemberId, process: u32) -> Option<&Member> {
        let member = self.members.get(id.index as usize)?;
        (member.generation() == id.generation && member.process() == process).then_some(member)
    }

    /// The slot in which a process is listed, whatever its state.
    #[must_use]
    pub fn member_of(&self, process: u32) -> Option<&Member> {
        self.slots(process).map(|(_, member)| member).find(|member| member.process() == process)
    }

    /// Returns the process's slot, whatever its state. A caller that asks for every process of the
    /// machine touches no slot that was never taken; one that is just being taken may be
    /// overlooked.
    #[must_use]
    pub fn listed(&self, process: u32) -> Option<(MemberId, &Member)> {
        // Of a thousand classes one lists it: the others are done with one look.
        if !self.occupied.is_any_marked(first_slot(process)) {
            return None;
        }
        let mut slots =
            self.slots(process).filter(|(index, _)| self.occupied.is_marked(*index as usize));
        let (index, member) =
            slots.find(|(_, one)| one.process() == process && one.state() != State::Free)?;
        Some((MemberId { index, generation: member.generation() }, member))
    }

    /// Returns the state of the process that watches the class from outside.
    #[must_use]
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// What is known from outside of the member in this slot.
    #[must_use]
    pub fn held(&self, id: MemberId) -> Option<&Held> {
        self.held.get(id.index as usize)
    }

    //= discnice/5.1-children
    /// Registers a process; its account up to `charged` is not charged to this class.
    ///
    /// `None` when the slots around its own are taken: the process is regulated all the same, and
    /// counted in [`Class::unlisted`].
    pub fn register(
        &self,
        process: u32,
        charged: Charged,
        exists: impl Fn(u32) -> bool,
    ) -> Option<(MemberId, &Member)> {
        // Its parent or a supervisor may have listed it while earlier slots were taken.
        let listed = self.listed(process).map(|(id, member)| (id.index, member));
        for (index, member) in listed.into_iter().chain(self.slots(process)) {
            if member.claim(process, charged, &exists) {
                self.occupied.mark(index as usize);
                self.watcher.announce();
                return Some((MemberId { index, generation: member.generation() }, member));
            }
        }
        self.header.unlisted.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Lists a process that was just started and executes a program, unless it has registered
    /// already: one that our library cannot enter never will.
    pub fn expect(&self, process: u32, exists: impl Fn(u32) -> bool) {
        if self.slots(process).any(|(_, member)| member.process() == process) {
            return;
        }
        for (index, member) in self.slots(process) {
            // It may register at any moment.
            if member.process() == process {
                return;
            }
            if member.expect(process, &exists) {
                self.occupied.mark(index as usize);
                self.watcher.announce();
                return;
            }
        }
    }

    /// The slots in which a process may be listed, in order. Neighbouring process ids start a little
    /// apart, so that short-lived crowds do not collide, but a few of them still share a page.
    fn slots(&self, process: u32) -> impl Iterator<Item = (u32, &Member)> {
        let first = first_slot(process);
        (0..PROBES).filter_map(move |probe| {
            let index = first.wrapping_add(probe) % MEMBERS;
            Some((index as u32, self.members.get(index)?))
        })
    }

    /// Returns the members of living processes, with a state that says what they do.
    pub fn living(&self, exists: impl Fn(u32) -> bool) -> impl Iterator<Item = &Member> {
        self.living_slots(exists).map(|(_, member)| member)
    }

    /// Returns the members of living processes with their slots.
    pub fn living_slots(
        &self,
        exists: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (MemberId, &Member)> {
        self.occupied.slots().filter_map(move |slot| {
            let member = self.members.get(slot)?;
            if member.process() == 0 {
                self.occupied.clear(slot, || member.process() != 0);
            }
            let index = slot as u32;
            let process = member.process();
            let lives = process != 0 && member.state() != State::Free && exists(process);
            lives.then(|| (MemberId { index, generation: member.generation() }, member))
        })
    }
}
