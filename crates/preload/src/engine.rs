//! The regulator of this process.
//!
//! A fork is noticed without hooking any of the ways to fork: what identifies the process lies
//! on a page that the kernel hands to a child as zeroes (`MADV_WIPEONFORK`), and a child that
//! finds it zero registers itself. A child of vfork(2), which shares its parent's memory until
//! it executes a program, finds it as it is and charges nothing: its own account is smaller than
//! what its parent has entered.

use core::ffi::CStr;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use discnice_ledger::member::{Books, Charged};
use discnice_ledger::policy::Resources;
use discnice_ledger::{Board, Class, Member, MemberId, State, Token};
use discnice_regulator::Regulator;
use discnice_sys::block::{self, Block, BlockId, Store};
use discnice_sys::{futex, memory, process, valgrind};

use crate::{environment, thread};
use discnice_regulator::Linux;

/// The class; null while the process is not regulated.
#[unsafe(link_section = "discnice_hot")]
static CLASS: AtomicPtr<Class> = AtomicPtr::new(ptr::null_mut());

/// Threads of which it is known what they wait for.
const WAITS: usize = 32;

/// What belongs to this process alone; alone on its page.
#[repr(C, align(4096))]
struct Page {
    /// One once the process has registered; zero again in a forked child.
    known: AtomicU32,
    /// The member's slot plus one; zero for none.
    slot: AtomicU32,
    generation: AtomicU32,
    process: AtomicU32,
    /// What threads wait for that only the kernel ends; zero for none.
    waiting: [AtomicI32; WAITS],
    /// Threads for which there was no room.
    others_waiting: AtomicU32,
    /// The books of a process that found no slot.
    books: Books,
}

static PAGE: Page = Page {
    known: AtomicU32::new(0),
    slot: AtomicU32::new(0),
    generation: AtomicU32::new(0),
    process: AtomicU32::new(0),
    waiting: [const { AtomicI32::new(0) }; WAITS],
    others_waiting: AtomicU32::new(0),
    books: Books::new(),
};

/// The kernel is too old to wipe the page: compare process ids instead.
static NO_WIPE: AtomicBool = AtomicBool::new(false);

/// The program has forbidden itself the calls that regulate network traffic.
static NO_TRAFFIC: AtomicBool = AtomicBool::new(false);

/// How to find the class again from a child: block and nonce.
static BLOCK: AtomicU64 = AtomicU64::new(0);
static NONCE: AtomicU64 = AtomicU64::new(0);

/// The board; null while it is not attached.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(ptr::null_mut());
/// There is none to be had.
static NO_BOARD: AtomicBool = AtomicBool::new(false);
/// Bytes of a class's traffic that the others notice.
const WORTH_TELLING: u64 = 1 << 20;

static HOST: Linux = Linux;

/// The class of this process, if it is regulated.
#[inline(always)]
pub fn class() -> Option<&'static Class> {
    // SAFETY: either null or an adopted class, which is never unmapped.
    unsafe { CLASS.load(Ordering::Relaxed).as_ref() }
}

/// Returns true if a threshold of network traffic is in force now.
#[inline(always)]
pub fn limits_traffic() -> bool {
    class().is_some_and(|class| class.is_limited_in(Resources::NETWORK))
        && !NO_TRAFFIC.load(Ordering::Relaxed)
}

/// Returns true if calls that send or receive must be examined.
#[inline(always)]
pub fn minds_traffic() -> bool {
    class().is_some_and(minds_traffic_of)
}

/// Returns true if calls that send or receive must be examined in this class.
#[inline(always)]
pub fn minds_traffic_of(class: &Class) -> bool {
    (class.minds_traffic() || class.path_shares().are_said()) && !NO_TRAFFIC.load(Ordering::Relaxed)
}

/// Returns true if traffic within the machine counts.
pub fn counts_loopback() -> bool {
    class().is_some_and(Class::counts_loopback)
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

/// The regulator, for whatever is not on the way of a cached call.
pub fn regulator() -> Option<Regulator<'static, Linux>> {
    let class = class()?;
    let books = member(class).map_or(&PAGE.books, Member::books);
    let held = thread::local().thread.outcomes.held();
    Some(Regulator::new(&HOST, class, books).with_board(board(class)).with_held(held))
}

/// The regulator of a member of the class, or of a process without one.
pub fn regulator_of(
    class: &'static Class,
    member: Option<&'static Member>,
) -> Regulator<'static, Linux> {
    Regulator::new(&HOST, class, member.map_or(&PAGE.books, Member::books))
}

/// The board of this user's classes. A class that gives way needs it at once; any other only tells
/// the others what it was charged, once that is worth telling.
fn board(class: &'static Class) -> Option<&'static Board> {
    board_if(class, || class.yields() || class.total().total() >= WORTH_TELLING)
}

/// The board if it is attached; else it is attached if that is `wanted`, unless it cannot be.
fn board_if(class: &'static Class, wanted: impl FnOnce() -> bool) -> Option<&'static Board> {
    // SAFETY: either null or an adopted board, which is never unmapped.
    let known = unsafe { BOARD.load(Ordering::Acquire).as_ref() };
    if known.is_some() || NO_BOARD.load(Ordering::Relaxed) || !wanted() {
        return known;
    }
    attach_board(class)
}

/// Tells the watcher of this user's classes that a process of this class begins to execute a
/// program that our library cannot enter.
pub fn announce(class: &'static Class) {
    let board = board_if(class, || true);
    if let Some(board) = board {
        board.announce(BlockId::from_claim(BLOCK.load(Ordering::Relaxed)));
        futex::wake_all(board.announcements());
    }
}

#[cold]
fn attach_board(class: &'static Class) -> Option<&'static Board> {
    let board = class.board().and_then(|id| {
        let block = map(id, Board::SIZE)?;
        // SAFETY: the kernel mapped `length` bytes at a page's start, and this user alone could shorten them.
        let board = unsafe { Board::adopt(block.start, block.length) };
        if board.is_err() {
            // SAFETY: nothing refers to the mapping.
            unsafe { block.unmap() };
        }
        board.ok()
    });
    match board {
        // Two threads may both attach it; one mapping then stays unused.
        Some(board) => BOARD.store(ptr::from_ref(board).cast_mut(), Ordering::Release),
        None => {
            class.lose_board();
            NO_BOARD.store(true, Ordering::Relaxed);
        }
    }
    board
}

/// Enters the class that the environment names.
pub fn join(token: &Token<'_>) {
    let Some(class) = adopt(token) else { return };
    // SAFETY: the page holds atomics and books only, for which zero is valid.
    let wiped = unsafe { memory::wipe_on_fork(NonNull::from(&PAGE).cast(), size_of::<Page>()) };
    NO_WIPE.store(wiped.is_err(), Ordering::Relaxed);
    BLOCK.store(token.block.get(), Ordering::Relaxed);
    NONCE.store(token.nonce, Ordering::Relaxed);
    let pid = process::id();
    if let Some(member) = token.member.and_then(|id| class.member(id, pid)) {
        // This process executes a new program: its books go on.
        name(member);
        member.set_state(State::Active);
        remember(pid, token.member);
    }
    CLASS.store(ptr::from_ref(class).cast_mut(), Ordering::Release);
}

fn adopt(token: &Token<'_>) -> Option<&'static Class> {
    let block = map(token.block, Class::SIZE)?;
    // SAFETY: the kernel mapped `length` bytes at a page's start, and this user alone could shorten them.
    let class = unsafe { Class::adopt(block.start, block.length, Some(token.nonce)) };
    if class.is_err() {
        // SAFETY: nothing refers to the mapping.
        unsafe { block.unmap() };
    }
    class.ok()
}

/// Maps a block, if it is to be believed. One that is a file is `length` bytes long.
fn map(id: BlockId, length: usize) -> Option<Block> {
    let block = find(id, length)?;
    valgrind::leave_unchecked(block.start, block.length);
    Some(block)
}

fn find(id: BlockId, length: usize) -> Option<Block> {
    match id.store()? {
        Store::Segment(segment) => block::adopt_segment(segment).ok(),
        Store::File(number) => {
            let mut path = [0; environment::BLOCK_PATH];
            if !environment::block_path(number, &mut path) {
                return None;
            }
            block::adopt_file(id, CStr::from_bytes_until_nul(&path).ok()?, length).ok()
        }
    }
}

fn remember(pid: u32, member: Option<MemberId>) {
    PAGE.slot.store(member.map_or(0, |id| id.index + 1), Ordering::Relaxed);
    PAGE.generation.store(member.map_or(0, |id| id.generation), Ordering::Relaxed);
    PAGE.process.store(pid, Ordering::Relaxed);
    PAGE.known.store(1, Ordering::Release);
}

/// This process's member, registering it if need be.
pub fn member(class: &'static Class) -> Option<&'static Member> {
    let known = PAGE.known.load(Ordering::Acquire) != 0
        && (!NO_WIPE.load(Ordering::Relaxed)
            || PAGE.process.load(Ordering::Relaxed) == process::id());
    if !known {
        register(class);
    }
    class.member(id()?, PAGE.process.load(Ordering::Relaxed))
}

/// This process's slot, if it has one.
pub fn id() -> Option<MemberId> {
    let index = PAGE.slot.load(Ordering::Relaxed).checked_sub(1)?;
    Some(MemberId { index, generation: PAGE.generation.load(Ordering::Relaxed) })
}

/// What a forked child forgets before it is regulated; null for nothing.
static INHERITED: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Has a forked child call `forget` before it is regulated.
pub fn forget_in_child(forget: fn()) {
    INHERITED.store(forget as *mut (), Ordering::Relaxed);
}

fn forget_inherited() {
    let forget = INHERITED.load(Ordering::Relaxed);
    if !forget.is_null() {
        // SAFETY: the function that `forget_in_child` was given.
        unsafe { core::mem::transmute::<*mut (), fn()>(forget)() };
    }
}

/// A process that was born with its account at zero: everything it does is the class's.
fn register(class: &'static Class) {
    let pid = process::id();
    forget_inherited();
    thread::local().thread.tally.take(|_, _| ());
    remember(pid, register_member(class, pid).map(|(id, _)| id));
}

/// Makes a member for a process, which is named after its program.
pub fn register_member(class: &'static Class, pid: u32) -> Option<(MemberId, &'static Member)> {
    let (id, member) = class.register(pid, Charged::default(), process::exists)?;
    name(member);
    Some((id, member))
}

/// Names the member after its program.
fn name(member: &Member) {
    let (name, length) = process::name();
    member.set_name(name.get(..length).unwrap_or(&[]));
}

/// What a new process needs to find the class.
pub fn token() -> Option<Token<'static>> {
    class()?;
    let (block, nonce) = (BLOCK.load(Ordering::Relaxed), NONCE.load(Ordering::Relaxed));
    let block = BlockId::from_claim(block);
    Some(Token { block, nonce, member: None, directory: None })
}

/// A new process was started to execute a program.
pub fn expect(child: u32) {
    if let Some(class) = class() {
        class.expect(child, process::exists);
    }
}

/// Returns true in a child of vfork(2), which shares all memory with its parent; false in a process that is not regulated, which may
/// have forbidden itself to ask.
pub fn is_borrowed() -> bool {
    class().is_some()
        && PAGE.known.load(Ordering::Acquire) != 0
        && PAGE.process.load(Ordering::Relaxed) != process::id()
}

/// Stops regulating this process: calls of ours end here.
pub fn suspend() {
    CLASS.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Regulates the process again, by this class, but network traffic only if that is still allowed.
pub fn go_on(class: &'static Class, traffic: bool) {
    if !traffic {
        NO_TRAFFIC.store(true, Ordering::Relaxed);
    }
    CLASS.store(ptr::from_ref(class).cast_mut(), Ordering::Release);
}

/// Frees this process's slot; what comes after that is charged without a member.
pub fn deregister() {
    if let (Some(class), Some(id)) = (class(), id())
        && let Some(member) = class.member(id, process::id())
    {
        let _ = PAGE.books.enter(member.books().charged());
        PAGE.slot.store(0, Ordering::Relaxed);
        member.release();
    }
}
