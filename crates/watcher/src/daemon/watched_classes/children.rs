//! Newcomers are offered to the classes that they may be of, and children get classes of their own.

use std::rc::Rc;

use discnice_ledger::board::Arrivals;
use discnice_registry::MappedClass;
use discnice_sys::block::BlockId;
use discnice_units::Moment;

use super::WatchedClasses;
use crate::daemon::child_classes;
use crate::daemon::tuning;
use crate::daemon::watched_class::WatchedClass;
use crate::discovery::newcomer::Newcomer;

impl WatchedClasses {
    /// Gives children classes of their own, where that is wanted, and has those classes follow their parents'.
    pub(super) fn settle_children(&mut self, now: Moment) {
        let mut made = Vec::new();
        for place in 0..self.kept.len() {
            let Some(kept) = self.kept.get_mut(place) else { break };
            let (parent, children) = (kept.mapped, kept.watch.take_children());
            let changed = kept.has_changed();
            made.extend(
                children.iter().filter_map(|one| child_classes::settle(&parent, one, &self.kept)),
            );
            if changed {
                self.hurry_children(now, &parent, |child| child_classes::follow(&parent, child));
            }
        }
        self.compare_children(now);
        if !made.is_empty() {
            made.into_iter().for_each(|mapped| self.keep(mapped));
            // So that what they bear is not taken for children of their parents' class.
            self.step_all(now, Arrivals::default());
        }
    }

    /// Has the classes of children follow their parents' where they have not: no change is counted of a class that was
    /// overwritten, and of a policyd that was killed the next one keeps classes that have members.
    fn compare_children(&mut self, now: Moment) {
        if !self.sum.has_children || now < self.compare_at {
            return;
        }
        self.compare_at = now.plus(tuning::daemon::SHOW);
        let mut parents: Vec<BlockId> = self.kept.iter().filter_map(|kept| kept.child_of).collect();
        parents.sort_unstable();
        parents.dedup();
        for block in parents {
            let kept =
                self.kept.iter().map(|kept| kept.mapped).find(|mapped| mapped.block == block);
            match kept {
                Some(parent) => {
                    self.hurry_children(now, &parent, |child| {
                        child_classes::follow(&parent, child)
                    });
                }
                None => {
                    let _ = self.find_or_keep(block);
                }
            }
        }
    }

    /// Has the classes of children be looked at next where a member of their parents' may have waited for one of them;
    /// returns whether there are such.
    pub(super) fn hurry_children_of_bereaved(&mut self, now: Moment) -> bool {
        // Without a pass through all classes, which most steps would make for nothing.
        if !self.sum.has_children {
            return false;
        }
        let mut any = false;
        for place in 0..self.kept.len() {
            let Some(kept) = self.kept.get_mut(place) else { break };
            if kept.watch.inquires() {
                let parent = kept.mapped;
                self.hurry_children(now, &parent, |_| true);
                any = true;
            }
        }
        any
    }

    /// Calls `with` for each class of a child of `parent`'s members, and has those be looked at next for which it returns true.
    fn hurry_children(
        &mut self,
        now: Moment,
        parent: &MappedClass,
        with: impl Fn(&MappedClass) -> bool,
    ) {
        for child in self.kept.iter_mut().filter(|kept| child_classes::is_child(kept, parent)) {
            if with(&child.mapped) {
                child.watch.look_at_all();
                (child.due, self.sum.due) = (now, now);
            }
        }
    }

    /// Tells the watches of parents which children of theirs have ended in classes of their own.
    pub(super) fn tell_of_ended(&mut self) {
        for place in 0..self.kept.len() {
            let Some(kept) = self.kept.get_mut(place) else { break };
            let (ended, parent) = (kept.watch.take_ended(), kept.child_of);
            if ended.is_empty() {
                continue;
            }
            if let Some(above) = self.kept.iter_mut().find(|kept| Some(kept.mapped.block) == parent)
            {
                ended.iter().for_each(|ended| above.watch.inherit(ended));
            }
        }
        let there_are = self.kept.iter().any(|kept| kept.child_of.is_some());
        self.kept.iter_mut().for_each(|kept| kept.watch.answered(there_are));
    }

    /// Offers each newcomer to the classes that it may be of, parents before their children.
    pub(super) fn meet(&mut self, now: Moment, newcomers: &[Rc<Newcomer>]) {
        if let [only] = &mut self.kept[..]
            && !only.is_per_child()
        {
            // Without a look at environments that its own list answers.
            if !newcomers.is_empty() {
                only.meet(now, newcomers);
            }
            return;
        }
        for newcomer in newcomers {
            let blocks = self.helpers.classes_of(newcomer);
            let find =
                |block: &BlockId| self.kept.iter().position(|kept| kept.mapped.block == *block);
            let mut places: Vec<usize> = blocks.iter().filter_map(find).collect();
            // What children with classes of their own bear is of their groups, too.
            places
                .sort_by_key(|place| self.kept.get(*place).is_none_or(WatchedClass::is_per_child));
            let mut is_taken = false;
            for place in places {
                if let Some(kept) = self.kept.get_mut(place)
                    && !(is_taken && kept.is_per_child())
                {
                    kept.meet(now, std::slice::from_ref(newcomer));
                    self.sum.due = Moment::FIRST;
                    is_taken |= kept.watch.has(newcomer.stat.id);
                }
            }
        }
    }
}
