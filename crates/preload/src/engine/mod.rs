//! The regulator of this process.

mod page;

use core::ffi::CStr;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use discnice_ledger::member::Charged;
use discnice_ledger::policy::Resources;
use discnice_ledger::{Board, Class, Member, MemberId, State, Token};
use discnice_regulator::{Host, Linux, Regulator};
use discnice_sys::block::{self, Block, BlockId, Store};
use discnice_sys::{futex, memory, process, valgrind};

use self::page::{NO_WIPE, PAGE, Page, remember};
pub use self::page::{end_waiting, id, is_waited_for, start_waiting};
use crate::{environment, thread};

/// The class; null while the process is not regulated.
#[unsafe(link_section = "discnice_hot")]
static CLASS: AtomicPtr<Class> = AtomicPtr::new(ptr::null_mut());

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

/// This process's member, registering it if need be.
pub fn member(class: &'static Class) -> Option<&'static Member> {
    let known = PAGE.known.load(Ordering::Acquire) != 0
        && (!NO_WIPE.load(Ordering::Relaxed)
            || PAGE.process.load(Ordering::Relaxed) == process::id());
    if !known {
        register(class);
    }
    let member = class.member(id()?, PAGE.process.load(Ordering::Relaxed));
    if member.is_none() {
        lose_member();
    }
    member
}

/// Goes on with books of this process's own, from where its account stands: its slot belongs to another process, which has the
/// same number in another PID namespace. What was charged so far is not charged again.
#[cold]
fn lose_member() {
    let _ = PAGE.books.enter(HOST.account());
    let _ = PAGE.books.enter_faults(HOST.major_faults());
    PAGE.slot.store(0, Ordering::Relaxed);
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
