//! The board of this user: what the classes know together of the others' traffic.

#![allow(unsafe_code, reason = "shared memory is mapped here, in `class` and in `store`")]

use std::io;

use discnice_sys::block::{Block, BlockId};

use crate::entry::{Entries, Entry};
use crate::store;

/// Stands for the board where classes have their names; no user can type it.
const NAME: &str = "@board";

/// A board and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// The mapped board.
    pub board: &'static discnice_ledger::Board,
    /// Its block.
    pub block: BlockId,
}

impl Board {
    const SIZE: usize = discnice_ledger::Board::SIZE;

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
        let entry = Entry {
            block: made.block,
            nonce: 0,
            limits: discnice_ledger::policy::Limits::UNLIMITED,
        };
        entries.write(NAME, &entry)?;
        Ok(made)
    }

    fn find(entries: &Entries) -> Option<Self> {
        let block = store::adopt(entries.read(NAME)?.block, Self::SIZE)?;
        // SAFETY: mapped, so long, at a page's start; we never unmap an adopted one.
        let board = unsafe { discnice_ledger::Board::adopt(block.start, block.length) };
        match board {
            Ok(board) if !block.removed => Some(Self { board, block: block.id }),
            _ => {
                // SAFETY: nothing refers to the mapping.
                unsafe { block.unmap() };
                None
            }
        }
    }

    fn create() -> io::Result<Self> {
        let Block { id, start, length, .. } = store::create(Self::SIZE)?;
        // SAFETY: a new block is zeroed, so long, and no other process's yet.
        match unsafe { discnice_ledger::Board::create(start, length) } {
            Ok(board) => Ok(Self { board, block: id }),
            Err(foreign) => Err(io::Error::other(format!("new shared memory is {foreign}"))),
        }
    }
}
