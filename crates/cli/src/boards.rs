//! The board of this user: what the classes know together of the others' traffic.

#![allow(unsafe_code, reason = "shared memory is mapped here and in `classes`")]

use anyhow::bail;
use discnice_budget::Board;
use discnice_sys::{Errno, shm};

use crate::classes::{self, KEYS};

/// Stands for the board where classes have their names; no user can type it.
const NAME: &str = "@board";

/// A board and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The mapped board.
    pub board: &'static Board,
    /// Its segment's number.
    pub segment: i32,
}

/// This user's board, made if need be.
///
/// # Errors
/// Shared memory is not to be had.
pub fn find_or_create() -> anyhow::Result<Found> {
    for attempt in 0..KEYS {
        let key = classes::key(NAME, attempt);
        if let Some(found) = shm::find(key, Board::SIZE).ok().and_then(adopt) {
            return Ok(found);
        }
        match shm::create(key, Board::SIZE) {
            Ok(segment) => return create(segment),
            // Somebody else's, or one that another command is just making.
            Err(Errno::EXIST) => {
                std::thread::sleep(std::time::Duration::from_millis(2));
                if let Some(found) = shm::find(key, Board::SIZE).ok().and_then(adopt) {
                    return Ok(found);
                }
            }
            Err(errno) => return Err(classes::explain(errno).into()),
        }
    }
    bail!("other programs hold all keys of shared memory for it")
}

fn adopt(segment: i32) -> Option<Found> {
    if !classes::is_mine(segment, Board::SIZE) {
        return None;
    }
    let start = shm::attach(segment).ok()?;
    // SAFETY: the kernel mapped so many bytes at a page's start; we never detach an adopted one.
    match unsafe { Board::adopt(start, Board::SIZE) } {
        Ok(board) => Some(Found { board, segment }),
        Err(_) => {
            // SAFETY: nothing refers to the mapping.
            unsafe { shm::detach(start) };
            None
        }
    }
}

fn create(segment: i32) -> anyhow::Result<Found> {
    let start = shm::attach(segment).map_err(classes::explain)?;
    // SAFETY: a new segment is zeroed, `Board::SIZE` bytes long, and nobody else's yet.
    match unsafe { Board::create(start, Board::SIZE) } {
        Ok(board) => Ok(Found { board, segment }),
        Err(foreign) => bail!("the kernel's shared memory is {foreign}"),
    }
}
