//! The variables that lead programs which this one starts to its class.

pub use discnice_interpose::environment::{BLOCK_PATH, Carry};

use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use discnice_interpose::environment::{Scratch, Variables};
use discnice_ledger::Token;

use crate::thread::local;

unsafe extern "C" {
    /// The program's environment, environ(7).
    pub static mut environ: *mut *mut c_char;
}

static VARIABLES: Variables = Variables::new();

/// The environment of this moment.
pub fn current() -> *const *const c_char {
    // SAFETY: reading the pointer as every getenv(3) does.
    unsafe { environ.cast_const().cast() }
}

/// Memory for environments is kept for so many threads that live at the same time.
const PLACES: usize = 64;

/// Memory for the environments that a thread passes on.
struct Place {
    /// Where the thread's state lies; zero for none.
    thread: AtomicUsize,
    scratch: Scratch,
}

static PLACE: [Place; PLACES] =
    [const { Place { thread: AtomicUsize::new(0), scratch: Scratch::new() } }; PLACES];

/// Memory for the environment of a program that this thread starts.
///
/// It is not in the state of the thread but belongs to the place of that state: nothing of ours runs when a thread ends, and
/// the next one mostly lies where the last one did. So do a child of vfork(2), which leaves it behind, and its parent.
pub fn scratch() -> &'static Scratch {
    let local = local();
    let here = ptr::from_ref(local) as usize;
    let own = |place: &&Place| {
        let (order, none) = (Ordering::Relaxed, 0);
        place.thread.load(order) == here
            || place.thread.compare_exchange(none, here, order, order).is_ok()
    };
    PLACE.iter().find(own).map_or(&local.scratch, |place| &place.scratch)
}

/// Takes them out of this program's environment; returns what they said.
///
/// # Safety
/// As [`Variables::take`].
pub unsafe fn take(block: *mut *mut c_char) -> Option<Token<'static>> {
    // SAFETY: the caller's own promise.
    unsafe { VARIABLES.take(block) }
}

/// Adds to `block` those that are carried.
///
/// # Safety
/// As [`Variables::with_ours`].
pub unsafe fn with_ours(
    block: *const *const c_char,
    scratch: &Scratch,
    token: &Token<'_>,
    carry: Carry,
) -> Option<*const *const c_char> {
    // SAFETY: the caller's own promise.
    unsafe { VARIABLES.with_ours(block, scratch, token, carry) }
}

/// Returns true if the dynamic linker would find the library from here.
pub fn is_reachable() -> bool {
    VARIABLES.is_reachable()
}

/// Writes the path of the block that is the file of this number; false where the directory is not known.
pub fn block_path(number: u64, to: &mut [u8; BLOCK_PATH]) -> bool {
    VARIABLES.block_path(number, to)
}
