//! One class: its block, which is made, mapped and removed.

#![allow(unsafe_code, reason = "shared memory is mapped here, in `board` and in `store`")]

use std::io;
use std::ptr::NonNull;

use anyhow::Context;
use discnice_ledger::policy::Limits;
use discnice_ledger::{Class, Foreign};
use discnice_sys::block::{Block, BlockId, Store};
use discnice_sys::{futex, shm, time};

use crate::abandoned::{is_abandoned, is_in_use};
use crate::entry::{Entries, Entry};
use crate::store::{self, Listed, now};
use crate::{MappedBoard, name};

/// So many classes are a crowd.
const CROWD: usize = 1024;

pub(crate) const SIZE: usize = Class::SIZE;

/// A class and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct MappedClass {
    /// The mapped class.
    pub class: &'static Class,
    /// Its block.
    pub block: BlockId,
    /// Set if its block was removed, so that no other process will find it, though its members are
    /// still held.
    pub removed: bool,
}

impl MappedClass {
    /// The class's name.
    #[must_use]
    pub fn name(&self) -> String {
        let bytes = self.class.name();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Returns true if `run` made the class by itself.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        name::is_automatic(&self.name())
    }

    /// Returns true if no other process finds the class any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let is_there = |found: &Self| !found.removed && found.class.nonce() == self.class.nonce();
        let Some(again) = attach_if(self.block, is_there) else { return true };
        // SAFETY: `again` goes no further than this, and has its own mapping.
        unsafe { again.unmap() };
        false
    }

    /// Releases what this process has touched of the class from its resident memory, until it is
    /// touched again.
    pub fn let_pages_go(&self) {
        // SAFETY: a class's block is a shared mapping of its size.
        unsafe { shm::let_pages_go(NonNull::from(self.class).cast(), SIZE) };
    }

    /// Unmaps the class.
    ///
    /// # Safety
    /// No copy of this value, and no reference to the class that was taken from one, is used again.
    pub unsafe fn unmap(self) {
        let (start, removed) = (NonNull::from(self.class).cast(), self.removed);
        // SAFETY: the caller vouches for it; each value that is handed out has its own mapping.
        unsafe { Block { id: self.block, start, length: SIZE, removed }.unmap() };
    }

    /// Sets the limits, wakes all threads that wait by the old ones, and notes them for programs of
    /// other versions.
    pub fn set_limits(&self, limits: &Limits) {
        self.class.set_limits(time::now(), limits);
        // Also where nothing that is in force now has changed: the classes of children follow.
        self.wake();
        let name = self.name();
        if !self.removed && !name::is_automatic(&name) {
            // Without an entry the class is found by its block.
            let _ = Entries::open().and_then(|entries| entries.write(&name, &self.entry(*limits)));
        }
    }

    /// Pauses all members, present and future, or lets them go on.
    pub fn set_paused(&self, paused: bool) {
        self.class.set_paused(paused);
        self.wake();
    }

    /// Has members and the watcher look at what has changed.
    pub fn wake(&self) {
        self.class.note_change();
        futex::wake_all(self.class.changes());
    }

    pub(crate) fn entry(&self, limits: Limits) -> Entry {
        Entry { block: self.block, nonce: self.class.nonce(), limits }
    }

    /// Destroys the class; processes that are in it keep it until they end.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn remove(&self) -> anyhow::Result<()> {
        let name = self.name();
        if !name::is_automatic(&name)
            && let Ok(entries) = Entries::open()
        {
            entries.remove(&name, self.block);
        }
        store::remove(self.block).context("cannot remove the class")
    }
}

/// The class in this block, if it is one of this user's.
#[must_use]
pub fn attach(id: BlockId) -> Option<MappedClass> {
    map(id).ok()
}

/// Why a block holds no class that can be used.
enum Unusable {
    /// The block is not one of this user's.
    Unmapped,
    /// The block holds something else, or a class of another version.
    Foreign(Foreign),
}

fn map(id: BlockId) -> Result<MappedClass, Unusable> {
    let block = store::adopt(id, SIZE).ok_or(Unusable::Unmapped)?;
    // SAFETY: mapped, so long, at a page's start; it is unmapped only where nothing refers to it.
    match unsafe { Class::adopt(block.start, block.length, None) } {
        Ok(class) => Ok(MappedClass { class, block: id, removed: block.removed }),
        Err(foreign) => {
            // SAFETY: nothing refers to the mapping.
            unsafe { block.unmap() };
            Err(Unusable::Foreign(foreign))
        }
    }
}

pub(crate) fn attach_if(id: BlockId, wanted: impl Fn(&MappedClass) -> bool) -> Option<MappedClass> {
    let found = attach(id)?;
    if wanted(&found) {
        return Some(found);
    }
    // SAFETY: `found` goes no further than this.
    unsafe { found.unmap() };
    None
}

pub(crate) fn create(name: &str) -> anyhow::Result<MappedClass> {
    let block = create_block().context("no shared memory for the class (see `discnice doctor`)")?;
    let (nonce, created) = (store::random(), now());
    // SAFETY: a new block is zeroed, so long, and no other process's yet.
    let class =
        unsafe { Class::create(block.start, block.length, nonce, name.as_bytes(), created) };
    let class = class.map_err(|foreign| anyhow::anyhow!("new shared memory is {foreign}"))?;
    // Without a board its traffic is taken for others' by classes that give way.
    if let Ok(board) = MappedBoard::find_or_create() {
        class.set_board(board.block);
    }
    Ok(MappedClass { class, block: block.id, removed: false })
}

fn create_block() -> io::Result<Block> {
    store::create(SIZE).or_else(|_| {
        // The system's limit: perhaps of abandoned classes.
        sweep_quietly(Sweep::Pressed);
        store::create(SIZE)
    })
}

/// Makes and removes a block as for a class; says where it lay.
///
/// # Errors
/// Why none can be made.
pub fn probe() -> io::Result<Store> {
    let block = store::create(SIZE)?;
    store::remove(block.id)?;
    let store = block.id.store();
    // SAFETY: nothing refers to the mapping.
    unsafe { block.unmap() };
    store.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Why abandoned classes are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// A command passes by.
    Passing,
    /// A command looks at all classes. That touches them, so it goes by what stands in each: since
    /// when no process used it.
    Looking,
    /// The system has no room for another class.
    Pressed,
}

/// Removes automatic classes that no process uses any more.
pub(crate) fn sweep(listed: &[Listed], why: Sweep) {
    let crowded = why == Sweep::Pressed || listed.len() > CROWD;
    let old = |since: u64| is_abandoned(since, crowded);
    let unused = listed.iter().filter(|one| one.attached != Some(true));
    for one in unused.filter(|one| why != Sweep::Passing || old(one.touched)) {
        let Some(found) = attach_if(one.id, MappedClass::is_automatic) else { continue };
        if !is_in_use(found.class, one.attached) && old(found.class.idle_since(one.touched)) {
            // Another command may have been first.
            let _ = found.remove();
        }
        // Removed or not, a mapping of ours would keep it.
        // SAFETY: `found` goes no further than this, and each of its kind has its own mapping.
        unsafe { found.unmap() };
    }
}

/// Sweeps like [`sweep`], without reporting that the list cannot be read.
pub(crate) fn sweep_quietly(why: Sweep) {
    if let Ok(listed) = store::list(SIZE) {
        sweep(&listed, why);
    }
}

pub(crate) fn is_of_other_version(id: BlockId) -> bool {
    match map(id) {
        Ok(found) => {
            // SAFETY: `found` goes no further than this.
            unsafe { found.unmap() };
            false
        }
        Err(Unusable::Unmapped) => false,
        Err(Unusable::Foreign(foreign)) => matches!(foreign, Foreign::OtherVersion(_)),
    }
}
