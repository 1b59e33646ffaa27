//! Which class somebody belongs to who was just born, told by the numbers of those whom he descends from.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use discnice_sys::block::BlockId;
use discnice_sys::procfs::Stat;

const FIRST: BlockId = BlockId::from_claim(0);
const LAST: BlockId = BlockId::from_claim(u64::MAX);

/// Everybody who ever was a member of a class, with the class's block: sessions and process groups may be
/// named after him. All watched classes write in it, so that a newcomer is looked up once, not offered to each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kindred(Rc<RefCell<BTreeSet<(u32, BlockId)>>>);

impl Kindred {
    /// Process `id` has become a member of the class in this block.
    pub(crate) fn add(&self, id: u32, block: BlockId) {
        self.0.borrow_mut().insert((id, block));
    }

    /// Who has this number now is no kin of that class.
    pub(crate) fn remove(&self, id: u32, block: BlockId) {
        self.0.borrow_mut().remove(&(id, block));
    }

    /// The blocks of the classes that somebody with this parent, group and session may descend from, or whose
    /// members had his number.
    pub(crate) fn classes(&self, of: &Stat) -> Vec<BlockId> {
        let known = self.0.borrow();
        let numbers = [of.parent, of.group, of.session, of.id];
        let classes = |id| known.range((id, FIRST)..=(id, LAST)).map(|(_, block)| *block);
        let mut found: Vec<BlockId> = numbers.into_iter().flat_map(classes).collect();
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
        let kindred = Kindred::default();
        assert!(kindred.classes(&stat).is_empty());
        let block = BlockId::of_segment;
        for (id, segment) in [(stat.parent, 7), (stat.session, 3), (stat.session, 7), (u32::MAX, 1)]
        {
            kindred.add(id, block(segment));
        }
        assert_eq!(kindred.classes(&stat), [block(3), block(7)]);
        kindred.remove(stat.parent, block(7));
        kindred.remove(stat.session, block(7));
        assert_eq!(kindred.classes(&stat), [block(3)]);
    }
}
