//! The board of this user: what the classes know together of the others' traffic.

#![allow(unsafe_code, reason = "shared memory is mapped here, in `class` and in `store`")]

use std::io;
use std::ptr::NonNull;

use discnice_ledger::Board;
use discnice_ledger::layout::VERSION;
use discnice_ledger::policy::Limits;
use discnice_sys::block::{Block, BlockId};

use crate::entry::{Entries, Entry};
use crate::store::{self, Listed};

/// What the board's name begins with, among the names of classes; no user can type it.
const NAME: &str = "@board";

/// A board and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct MappedBoard {
    /// The mapped board.
    pub board: &'static Board,
    /// Its block.
    pub block: BlockId,
}

impl MappedBoard {
    const SIZE: usize = Board::SIZE;

    /// This user's board, made if need be.
    ///
    /// # Errors
    /// There is no private directory, or no shared memory.
    pub fn find_or_create() -> io::Result<Self> {
        let entries = Entries::open()?;
        if let Some(found) = Self::find(&entries) {
            return Ok(found);
        }
        entries.lock();
        if let Some(found) = Self::find(&entries) {
            return Ok(found);
        }
        let made = Self::create()?;
        let entry = Entry { block: made.block, nonce: 0, limits: Limits::UNLIMITED };
        entries.write(&name_in(VERSION), &entry)?;
        Ok(made)
    }

    fn find(entries: &Entries) -> Option<Self> {
        Self::map(entries.read(&name_in(VERSION))?.block)
    }

    fn map(id: BlockId) -> Option<Self> {
        let block = store::adopt(id, Self::SIZE)?;
        // SAFETY: mapped, so long, at a page's start; it is unmapped only where nothing refers to it.
        let board = unsafe { Board::adopt(block.start, block.length) };
        match board {
            Ok(board) if !block.removed => Some(Self { board, block: block.id }),
            _ => {
                // SAFETY: nothing refers to the mapping.
                unsafe { block.unmap() };
                None
            }
        }
    }

    /// Removes the boards of sessions that are over: no process has them mapped, none has had for as long as `old` says, no
    /// entry of this session leads to them, and they are not among those that classes have `used`.
    pub(crate) fn sweep(old: impl Fn(u64) -> bool, used: &[BlockId]) {
        let Ok(listed) = store::list(Self::SIZE) else { return };
        let entry = Entries::open().ok().and_then(|entries| entries.read(&name_in(VERSION)));
        let own = entry.map(|entry| entry.block);
        remove_unused(listed.into_iter().filter(|one| is_left(one, own, &old)), used);
    }

    /// # Safety
    /// Nothing refers to the board any more.
    unsafe fn unmap(self) {
        let start = NonNull::from(self.board).cast();
        let block = Block { id: self.block, start, length: Self::SIZE, removed: false };
        // SAFETY: the caller's; it was mapped as so many bytes.
        unsafe { block.unmap() };
    }

    fn create() -> io::Result<Self> {
        let Block { id, start, length, .. } = store::create(Self::SIZE)?;
        // SAFETY: a new block is zeroed, so long, and no other process's yet.
        match unsafe { Board::create(start, length) } {
            Ok(board) => Ok(Self { board, block: id }),
            Err(foreign) => Err(io::Error::other(format!("new shared memory is {foreign}"))),
        }
    }
}

/// The name of the board of a version, which programs of another one cannot use: if they replaced it, two programs of
/// different versions that are started in turn would make a board each time.
fn name_in(version: u32) -> String {
    format!("{NAME}-{version}")
}

/// Returns true if no process has the block mapped, nor had one lately, and the entry of this session does not lead to it.
fn is_left(one: &Listed, own: Option<BlockId>, old: impl Fn(u64) -> bool) -> bool {
    one.attached == Some(false) && old(one.touched) && own != Some(one.id)
}

/// Removes those among the blocks that are boards and that are not `used`.
fn remove_unused(blocks: impl Iterator<Item = Listed>, used: &[BlockId]) {
    for one in blocks.filter(|one| !used.contains(&one.id)) {
        // Another program's may be as large.
        let Some(found) = MappedBoard::map(one.id) else { continue };
        // SAFETY: `found` goes no further than this.
        unsafe { found.unmap() };
        // Another command may have been first.
        let _ = store::remove(one.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_of_another_version_is_left_in_its_place() {
        let entries = Entries::open().unwrap();
        let block = store::create(4096).unwrap().id;
        let others = Entry { block, nonce: 0, limits: Limits::UNLIMITED };
        let name = name_in(VERSION - 1);
        entries.write(&name, &others).unwrap();
        let own = MappedBoard::find_or_create().unwrap().block;
        assert_eq!(entries.read(&name).map(|entry| entry.block), Some(block));
        assert_eq!(MappedBoard::find_or_create().unwrap().block, own);
        entries.remove(&name, block);
        store::remove(block).unwrap();
    }

    #[test]
    fn boards_that_no_class_uses_are_removed() {
        let [left, used] = std::array::from_fn(|_| MappedBoard::create().unwrap().block);
        let others = store::create(MappedBoard::SIZE).unwrap();
        let blocks = [left, used, others.id];
        let listed = |id| Listed { id, attached: Some(false), touched: 0 };
        remove_unused(blocks.into_iter().map(listed), &[used]);
        let there =
            blocks.map(|id| store::adopt(id, MappedBoard::SIZE).is_some_and(|one| !one.removed));
        assert_eq!(there, [false, true, true], "one left, one used, one of another program");
        for id in [used, others.id] {
            store::remove(id).unwrap();
        }
    }

    #[test]
    fn what_is_used_or_was_lately_or_is_this_sessions_is_not_left() {
        let [id, own] = [1, 2].map(BlockId::of_segment);
        let left = Listed { id, attached: Some(false), touched: 7 };
        let is = |one: Listed| is_left(&one, Some(own), |touched| touched < 9);
        assert!(is(left));
        assert!(!is(Listed { attached: Some(true), ..left }));
        assert!(!is(Listed { attached: None, ..left }), "a file goes with its directory");
        assert!(!is(Listed { touched: 9, ..left }));
        assert!(!is(Listed { id: own, ..left }));
    }
}
