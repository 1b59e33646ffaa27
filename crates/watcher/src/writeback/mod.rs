//! Steady write-back of what the held dirty.
//!
//! Left alone the kernel collects dirty pages for seconds and then writes them at full speed,
//! however slowly they were dirtied. So the files that a process has open for writing are written
//! back in portions, as our library does from inside. sync_file_range(2) changes nothing that is
//! visible; but it waits while the disk's queue is full, so a process of its own does it: one that
//! holds others must never wait. Small files are closed before that one looks; [`crate::writeback::closed_files`]
//! finds them. Of large ones that were dirtied at once [`crate::writeback::portions`] writes a portion after the
//! other.

pub(crate) mod closed_files;
mod fuse_daemons;
pub(crate) mod fuse_writes;
mod helper;
pub(crate) mod in_flight;
pub(crate) mod messages;
pub(crate) mod portions;
mod recent;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::rc::Rc;

use discnice_ledger::Class;
use discnice_sys::time;
use in_flight::Standing;
use messages::{DAEMONS, News, Order};
use portions::Pace;

use crate::accounting::created_files::Made;
use crate::helper_process;

/// The process that writes back, which all watched classes share; started when it is first needed. It
/// ends with us.
#[derive(Debug, Clone, Default)]
pub struct WriteBack(Rc<RefCell<Helper>>);

/// What we have of it.
#[derive(Debug, Default)]
struct Helper {
    /// Tells it which files to write, and receives what was made; `None` while there is none.
    socket: Option<File>,
    made: Made,
    standing: Standing,
}

impl Helper {
    fn start(&mut self) {
        if self.socket.is_none() {
            self.socket = helper_process::start(helper::serve).ok();
        }
    }

    fn hear(&mut self) {
        let mut message = [0; messages::LENGTH];
        while let Some(socket) = &mut self.socket
            && socket.read_exact(&mut message).is_ok()
        {
            match News::decode(message) {
                Some(News::Made { class, device, count }) => self.made.add((class, device), count),
                Some(News::Written(id)) => self.standing.note_told(id),
                None => {}
            }
        }
    }
}

impl WriteBack {
    /// Has the dirty pages of all files that process `id` has open for writing written, soon. Where
    /// that is not possible the kernel's own write-back does it, later.
    pub fn of(&self, id: u32, pace: Pace) {
        self.tell(Order { id, pace, left: None });
    }

    /// Does that for a process that stands until no more than `left` bytes are on their way; returns false if that will not
    /// be told.
    pub(crate) fn await_written(&self, id: u32, pace: Pace, left: u64) -> bool {
        self.0.borrow_mut().standing.begin(time::now(), id);
        self.tell(Order { id, pace, left: Some(left) })
    }

    /// Whether it was told of a process that it need not wait any more.
    pub(crate) fn is_written(&self, id: u32) -> bool {
        let mut helper = self.0.borrow_mut();
        helper.hear();
        helper.standing.may_go(id)
    }

    /// Asks for write-back of what the user's daemons that serve files have open.
    pub(crate) fn of_daemons(&self, pace: Pace) {
        self.tell(Order { id: DAEMONS, pace, left: None });
    }

    /// Starts the process now, as it cannot be once this one has threads.
    pub(crate) fn prepare(&self) {
        self.0.borrow_mut().start();
    }

    fn tell(&self, order: Order) -> bool {
        let mut helper = self.0.borrow_mut();
        helper.start();
        let told = helper.socket.as_mut().map(|socket| socket.write_all(&order.encode()));
        match told {
            Some(Ok(())) => true,
            // A full queue means that the disk is behind: to start more would not help.
            Some(Err(why)) if why.kind() == io::ErrorKind::WouldBlock => false,
            _ => {
                helper.socket = None;
                false
            }
        }
    }

    /// Enters the files that members of this class were seen making.
    pub(crate) fn enter_made(&self, class: &Class) {
        let mut helper = self.0.borrow_mut();
        helper.hear();
        helper.made.enter(class);
    }
}
