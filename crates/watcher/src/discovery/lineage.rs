//! Finds the class of a new process by its ancestry.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use discnice_sys::block::BlockId;

use crate::discovery::newcomer::Newcomer;

const FIRST: BlockId = BlockId::from_claim(0);
const LAST: BlockId = BlockId::from_claim(u64::MAX);

/// All processes that ever were members of a class, with the class's block: sessions and process
/// groups may be named after them. All watched classes write in it, so that a newcomer is looked up
/// once, not offered to each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineage(Rc<RefCell<BTreeSet<(u32, BlockId)>>>);

impl Lineage {
    /// Process `id` has become a member of the class in this block.
    pub(crate) fn add(&self, id: u32, block: BlockId) {
        self.0.borrow_mut().insert((id, block));
    }

    /// Forgets a number: the process that has it now is not related to that class.
    pub(crate) fn remove(&self, id: u32, block: BlockId) {
        self.0.borrow_mut().remove(&(id, block));
    }

    /// Whether a process is, or was, a member of any class.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.borrow().range((id, FIRST)..=(id, LAST)).next().is_some()
    }

    /// Returns the blocks of the classes that a process with this parent, group, session and
    /// ancestors may descend from, or that had members of its number.
    pub(crate) fn classes(&self, of: &Newcomer) -> Vec<BlockId> {
        let (known, stat) = (self.0.borrow(), &of.stat);
        let numbers = [stat.parent, stat.group, stat.session, stat.id];
        let numbers = numbers.into_iter().chain(of.ancestors.iter().map(|ancestor| ancestor.id));
        let classes = |id| known.range((id, FIRST)..=(id, LAST)).map(|(_, block)| *block);
        let mut found: Vec<BlockId> = numbers.flat_map(classes).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::procfs;

    #[test]
    fn classes_are_found_by_the_numbers_of_kin() {
        let stat = procfs::stat(std::process::id()).unwrap();
        let lineage = Lineage::default();
        let known = |lineage: &Lineage| lineage.classes(&procfs::stat(stat.id).unwrap().into());
        assert!(known(&lineage).is_empty());
        let block = BlockId::of_segment;
        for (id, segment) in [(stat.parent, 7), (stat.session, 3), (stat.session, 7), (u32::MAX, 1)]
        {
            lineage.add(id, block(segment));
        }
        assert_eq!(known(&lineage), [block(3), block(7)]);
        lineage.remove(stat.parent, block(7));
        lineage.remove(stat.session, block(7));
        assert_eq!(known(&lineage), [block(3)]);
    }
}
