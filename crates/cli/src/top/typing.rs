//! What is typed at the terminal, before crossterm makes events of it.
//!
//! crossterm reads until a key is complete. A key of which only the beginning has come (a slow line, Alt-[, a letter of
//! another character set) would keep the view from drawing, and from noticing signals, until another is pressed. It also leaves
//! what is longer than its buffer unread until more is typed.

use std::ffi::OsStr;
use std::io::{self, stdin};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::getsid;
use rustix::stdio::dup2_stdin;
use rustix::termios::{QueueSelector, tcflush, tcgetsid, ttyname};

/// What there is at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Nothing.
    Nothing,
    /// Something that can be read.
    Something,
    /// The terminal has hung up, which crossterm would never return from reading.
    Gone,
}

/// Has standard input be read without waiting. The terminal is opened once more for that, as the flag of what this process was
/// started with is the shell's, too. Where it cannot be opened it is read as it was.
pub fn read_without_waiting() {
    if let Ok(again) = opened_again() {
        let _ = dup2_stdin(&again);
    }
}

fn opened_again() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let of_session = tcgetsid(stdin()).is_ok_and(|session| getsid(None) == Ok(session));
    // Any user may open the controlling terminal so, also one that its device does not belong to (su).
    if of_session && let Ok(terminal) = open("/dev/tty", flags, Mode::empty()) {
        return Ok(terminal);
    }
    let name = ttyname(stdin(), Vec::new())?;
    Ok(open(OsStr::from_bytes(name.to_bytes()), flags, Mode::empty())?)
}

/// Waits until something is typed, but no longer than `time`.
pub fn wait(time: Duration) -> Typed {
    let (input, time) = (stdin(), Timespec::try_from(time).unwrap_or_default());
    let mut asked = [PollFd::new(&input, PollFlags::IN)];
    // A signal only ends the wait.
    if poll(&mut asked, Some(&time)).is_err() {
        return Typed::Nothing;
    }
    let found = asked[0].revents();
    if found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        Typed::Gone
    } else if found.contains(PollFlags::IN) {
        Typed::Something
    } else {
        Typed::Nothing
    }
}

/// Forgets what crossterm leaves unread.
pub fn discard() {
    let _ = tcflush(stdin(), QueueSelector::IFlush);
}
