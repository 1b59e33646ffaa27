//! A socket that systemd has opened (sd_listen_fds(3)).
#![allow(unsafe_code, reason = "a descriptor that comes as a number in the environment")]

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// The first descriptor that systemd passes.
const FIRST: i32 = 3;

/// The socket that was passed to this process, if one was.
#[must_use]
pub fn passed() -> Option<UnixListener> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let ours = number("LISTEN_PID")? == std::process::id() && number("LISTEN_FDS")? >= 1;
    if !ours || rustix::fs::fstat(borrowed()).is_err() {
        return None;
    }
    // SAFETY: the environment says that the descriptor was opened for this process; it is open, and
    // this is called once, before anything else of this process could have got that number.
    Some(UnixListener::from(unsafe { OwnedFd::from_raw_fd(FIRST) }))
}

fn borrowed() -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: only asked what it is; if it is closed the kernel says so.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(FIRST) }
}
