//! What threads of the program wait for.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::engine;

/// The program waits with functions that we see; others' waits could not release what is parked.
static USED: AtomicBool = AtomicBool::new(false);

/// Notes that the program waits with such a function.
pub(super) fn note_used() {
    USED.store(true, Ordering::Relaxed);
}

/// Returns true if the program waits with functions that we see.
pub fn is_used() -> bool {
    USED.load(Ordering::Relaxed)
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// An epoll instance.
    Epoll(c_int),
    /// Descriptors, with poll or select.
    Poll,
}

impl Waits {
    pub(super) const fn number(self) -> i32 {
        match self {
            Self::Epoll(epoll) => epoll.wrapping_add(1),
            Self::Poll => -1,
        }
    }

    /// Returns true if another thread waits for it without a time-out of ours.
    pub fn is_going_on(self) -> bool {
        engine::is_waited_for(self.number())
    }
}
