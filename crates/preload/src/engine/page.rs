//! What belongs to this process alone: its member, and what its threads wait for.
//!
//! A fork is noticed without hooking any of the ways to fork: what identifies the process lies
//! on a page that the kernel hands to a child as zeroes (`MADV_WIPEONFORK`), and a child that
//! finds it zero registers itself. A child of vfork(2), which shares its parent's memory until
//! it executes a program, finds it as it is and charges nothing: its own account is smaller than
//! what its parent has entered.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use discnice_ledger::MemberId;
use discnice_ledger::member::Books;

/// Threads of which it is known what they wait for.
const WAITS: usize = 32;

/// What belongs to this process alone; alone on its page.
#[repr(C, align(4096))]
pub(super) struct Page {
    /// One once the process has registered; zero again in a forked child.
    pub(super) known: AtomicU32,
    /// The member's slot plus one; zero for none.
    pub(super) slot: AtomicU32,
    generation: AtomicU32,
    pub(super) process: AtomicU32,
    /// What threads wait for that only the kernel ends; zero for none.
    waiting: [AtomicI32; WAITS],
    /// Threads for which there was no room.
    others_waiting: AtomicU32,
    /// The books of a process that found no slot.
    pub(super) books: Books,
}

pub(super) static PAGE: Page = Page {
    known: AtomicU32::new(0),
    slot: AtomicU32::new(0),
    generation: AtomicU32::new(0),
    process: AtomicU32::new(0),
    waiting: [const { AtomicI32::new(0) }; WAITS],
    others_waiting: AtomicU32::new(0),
    books: Books::new(),
};

/// The kernel is too old to wipe the page: compare process ids instead.
pub(super) static NO_WIPE: AtomicBool = AtomicBool::new(false);

pub(super) fn remember(pid: u32, member: Option<MemberId>) {
    PAGE.slot.store(member.map_or(0, |id| id.index + 1), Ordering::Relaxed);
    PAGE.generation.store(member.map_or(0, |id| id.generation), Ordering::Relaxed);
    PAGE.process.store(pid, Ordering::Relaxed);
    PAGE.known.store(1, Ordering::Release);
}

/// This process's slot, if it has one.
pub fn id() -> Option<MemberId> {
    let index = PAGE.slot.load(Ordering::Relaxed).checked_sub(1)?;
    Some(MemberId { index, generation: PAGE.generation.load(Ordering::Relaxed) })
}

/// Notes that a thread begins to wait for `what` without a time-out of ours; [`end_waiting`] takes
/// what this returns. A thread that is cancelled meanwhile stays listed, which makes others sleep
/// in their calls instead of being told later.
pub fn start_waiting(what: i32) -> Option<&'static AtomicI32> {
    let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
    let free = |slot: &&AtomicI32| slot.compare_exchange(0, what, acquire, relaxed).is_ok();
    let slot = PAGE.waiting.iter().find(free);
    if slot.is_none() {
        PAGE.others_waiting.fetch_add(1, Ordering::Relaxed);
    }
    slot
}

/// Notes the end of a wait that began with [`start_waiting`].
pub fn end_waiting(slot: Option<&'static AtomicI32>) {
    match slot {
        Some(slot) => slot.store(0, Ordering::Release),
        None => {
            let fewer = |waiting: u32| Some(waiting.saturating_sub(1));
            let _ = PAGE.others_waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
    }
}

/// Returns true if, as far as known, a thread waits for `what` since [`start_waiting`].
pub fn is_waited_for(what: i32) -> bool {
    PAGE.others_waiting.load(Ordering::Relaxed) != 0
        || PAGE.waiting.iter().any(|slot| slot.load(Ordering::Relaxed) == what)
}
