//! The members of a class under watch: in the order in which they are due, held, and let go.

use std::collections::{HashMap, HashSet};

use discnice_units::Moment;

use crate::member::Watched;
use crate::schedule::queue::Queue;

/// All members of one class.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) all: HashMap<u32, Watched>,
    queue: Queue,
    /// Processes that are held, or not wholly let go.
    held: HashSet<u32>,
    /// Held no longer, but not yet let go.
    leaving: Vec<Watched>,
}

impl Members {
    /// Adds a process, which is looked at at once.
    pub(super) fn add(&mut self, watched: Watched) {
        let id = watched.id();
        self.all.insert(id, watched);
        self.queue.add(Moment::FIRST, id);
    }

    /// Has one member looked at then.
    pub(super) fn set_due(&mut self, id: u32, due: Moment) {
        if let Some(member) = self.all.get_mut(&id) {
            member.set_due(due);
            self.queue.add(due, id);
        }
    }

    /// Changes the members for which this holds, and has them looked at now.
    pub(super) fn look_at(
        &mut self,
        now: Moment,
        which: impl Fn(&Watched) -> bool,
        change: impl Fn(&mut Watched),
    ) {
        for (id, member) in self.all.iter_mut().filter(|(_, member)| which(member)) {
            change(member);
            member.set_due(now);
            self.queue.add(now, *id);
        }
    }

    /// When the first member is due.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.queue.next()
    }

    /// Takes the next entry that is due by now: the member, unless another entry of it was made later.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Option<u32>> {
        let (due, id) = self.queue.take_due(now)?;
        Some(self.all.get(&id).filter(|member| member.due() == due).map(|_| id))
    }

    /// Notes that a member is held, or not wholly let go.
    pub(super) fn note_held(&mut self, id: u32) {
        self.held.insert(id);
    }

    /// Returns true if a process is held, or not wholly let go.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty() || !self.leaving.is_empty()
    }

    /// Keeps a process that is a member no longer until it is let go.
    pub(super) fn leave(&mut self, watched: Watched) {
        if watched.is_letting_go() {
            self.leaving.push(watched);
        }
    }

    /// Lets go of processes that are members no longer, as far as they can be let go.
    pub(super) fn release_leaving(&mut self) {
        self.leaving.retain_mut(|member| {
            member.let_go();
            member.is_letting_go()
        });
    }

    /// Returns true if processes that are members no longer are still to be let go.
    pub(super) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Takes note of held threads that stopped or ended.
    pub(super) fn tend(&mut self) {
        let members = &mut self.all;
        self.held.retain(|id| {
            members.get_mut(id).is_some_and(|member| {
                member.tend();
                member.is_held()
            })
        });
        self.leaving.iter_mut().for_each(Watched::tend);
    }

    /// Takes all processes out, to let go of them.
    pub(super) fn take_all(&mut self) -> Vec<Watched> {
        let mut all: Vec<Watched> = self.all.drain().map(|(_, member)| member).collect();
        all.append(&mut self.leaving);
        all
    }
}
