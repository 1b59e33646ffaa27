//! Two processes that hold the listener.
//!
//! When the last descriptor of a listener is closed, every call below its filter fails with
//! `ENOSYS`, for ever. So a second process holds it, which does nothing but watch the supervisor:
//! when that dies, in whatever way, it first forks a new second one and then is the supervisor. A
//! supervisor that is stopped by a signal is killed by the second, with the same effect. A
//! supervisor that loses its second forks another. Only killing both within a moment defeats this.
#![allow(unsafe_code, reason = "fork(2) without exec")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process};

use crate::supervisor::{self, Shared};

/// How often the second process looks whether the supervisor is stopped.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Starts the second process; returns the connection that ends with it.
///
/// # Errors
/// No descriptors or processes left.
pub fn start(shared: &'static Shared) -> io::Result<OwnedFd> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the child uses nothing that another thread may hold: it polls, and later forks. The
    // allocator, which it needs when it takes over, is made usable in children by libc.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            keep_only(&[shared.listener.as_raw_fd(), theirs.as_raw_fd()]);
            stand_by(shared, &theirs)
        }
        _ => Ok(ours),
    }
}

/// Waits for the supervisor's end, and replaces it.
fn stand_by(shared: &'static Shared, supervisor: &OwnedFd) -> ! {
    let other = rustix::process::getppid();
    loop {
        let mut watched = [
            PollFd::new(supervisor, PollFlags::empty()),
            PollFd::new(&shared.listener, PollFlags::empty()),
        ];
        // An interrupted wait is repeated.
        if poll(&mut watched, Some(&LOOK)) == Ok(0) {
            other.into_iter().for_each(end_if_stopped);
            continue;
        }
        if watched[1].revents().contains(PollFlags::HUP) {
            end();
        }
        if watched[0].revents().contains(PollFlags::HUP) {
            let peer = start(shared).ok();
            supervisor::run(shared, peer);
        }
    }
}

/// Ends a supervisor that a signal has stopped: calls would wait for as long as it stands.
fn end_if_stopped(supervisor: Pid) {
    // While the supervisor is the parent, no other process has its number.
    let stopped = discnice_sys::procfs::stat(supervisor.as_raw_nonzero().get().cast_unsigned())
        .is_some_and(|stat| stat.state == b'T');
    if stopped && rustix::process::getppid() == Some(supervisor) {
        let _ = kill_process(supervisor, Signal::KILL);
    }
}

/// Ends this process, which is a copy of another, without running what that one will run.
pub fn end() -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(0) }
}

/// Closes all descriptors but the first three and these.
pub fn keep_only(kept: &[RawFd]) {
    let mut kept = kept.to_vec();
    kept.sort_unstable();
    let mut from = 3;
    let mut is_done = true;
    for fd in &kept {
        is_done &= close_range(from, fd - 1);
        from = fd + 1;
    }
    if !is_done || !close_range(from, RawFd::MAX) {
        close_listed(&kept);
    }
}

/// close_range(2); false where it is refused, as by old versions of containers.
fn close_range(first: RawFd, last: RawFd) -> bool {
    // SAFETY: nothing of this process uses these descriptors; see the callers.
    first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
}

/// Closes what the kernel lists, but the first three and these.
fn close_listed(kept: &[RawFd]) {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2 && !kept.contains(number)) {
        // SAFETY: as in `close_range`; the listing's own descriptor is closed already.
        unsafe { libc::close(number) };
    }
}
