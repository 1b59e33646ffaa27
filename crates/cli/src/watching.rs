//! The daemon that watches classes from outside, as this program starts and asks it.

#![allow(
    unsafe_code,
    reason = "classes that nobody uses any more are unmapped, and libc's clock is named"
)]

use discnice_budget::Board;
use discnice_budget::board::Arrivals;
use discnice_policyd::client::{self, Answer};
use discnice_policyd::{Classes, Mapped};

use crate::boards;
use crate::classes::{self, Found};

/// Has policyd watch the class; starts it if need be.
///
/// # Errors
/// It cannot be started, or does not answer.
pub fn watch(found: &Found, answer: Answer) -> std::io::Result<()> {
    client::watch(found.segment, &std::env::current_exe()?, answer)
}

/// From now on this process reads the clock without entering the kernel, where libc does: whoever watches
/// asks for it three times whenever he wakes up.
pub fn read_the_clock_by_libc() {
    let clock = libc::clock_gettime as *const ();
    // SAFETY: libc's function takes and returns what the vDSO's does, and is mapped as long as we run.
    unsafe { discnice_sys::time::read_by(clock.cast_mut().cast()) };
}

/// The classes of this user, for policyd.
#[derive(Debug)]
pub struct Ours {
    /// `None` where it is not to be had: then each class is asked once a second.
    board: Option<&'static Board>,
}

impl Ours {
    /// All that there are.
    pub fn new() -> Self {
        Self { board: boards::find_or_create().ok().map(|found| found.board) }
    }
}

impl From<Found> for Mapped {
    fn from(found: Found) -> Self {
        Self { class: found.class, segment: found.segment }
    }
}

impl Classes for Ours {
    fn all(&self) -> Vec<Mapped> {
        classes::all().unwrap_or_default().into_iter().map(Mapped::from).collect()
    }

    fn arrivals(&self) -> Arrivals {
        self.board.map(Board::take_arrivals).unwrap_or_default()
    }

    fn find(&self, segment: i32) -> Option<Mapped> {
        classes::attach(segment).map(Mapped::from)
    }

    fn let_pages_go(&self, mapped: Mapped) {
        Found { class: mapped.class, segment: mapped.segment }.let_pages_go();
    }

    fn unmap(&self, mapped: Mapped) {
        let found = Found { class: mapped.class, segment: mapped.segment };
        // SAFETY: policyd gives a class back when it has dropped whatever referred to it, and both
        // methods above made a mapping of its own for each.
        unsafe { found.unmap() };
    }
}
