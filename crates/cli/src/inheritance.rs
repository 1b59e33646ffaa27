//! Signals and descriptors of the command: what this program needs otherwise it changes for itself, and gives back before it
//! executes the command.
//!
//! The Rust runtime would do some of that before `main`, and end the program where a system call of it fails (poll(2), mmap(2)
//! for a signal stack). A command would then not be started for something that it does not need; so this program has a `main` of
//! its own.

#![allow(unsafe_code, reason = "signals and descriptors by number")]

use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// What SIGPIPE did when this program was started.
static SIGPIPE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// What SIGXFSZ did; ignored while this program writes files of its own.
static SIGXFSZ: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// Which of the first three descriptors were closed and are now open.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// Makes this process fit for Rust code, as the Rust runtime would: a reader that has gone away makes a write fail and does
/// not end the program, and no file of ours gets the number of a standard stream.
pub fn change() {
    keep_previous(&SIGPIPE, libc::SIGPIPE);
    for descriptor in 0..3 {
        // SAFETY: only asks for a flag of a descriptor, which may be closed.
        let is_open = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
        if !is_open && io::Error::last_os_error().raw_os_error() == Some(libc::EBADF) {
            occupy(descriptor);
        }
    }
}

/// Opens something at a standard stream's number, which is the lowest that is free.
fn occupy(descriptor: i32) {
    let ways = [(c"/dev/null", libc::O_RDWR), (c"/", libc::O_PATH)];
    // SAFETY: opens files by constant names.
    if ways.into_iter().any(|(path, how)| unsafe { libc::open(path.as_ptr(), how) } == descriptor) {
        CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
    }
}

/// A limit of the length of files (`RLIMIT_FSIZE`), which may be meant for the command, makes our own writes fail, and
/// does not end us.
pub fn survive_limits_of_files() {
    keep_previous(&SIGXFSZ, libc::SIGXFSZ);
}

/// Ignores a signal, and notes what it did before.
fn keep_previous(place: &AtomicUsize, signal: i32) {
    // SAFETY: no handler of ours runs; what was there before is given back by `restore`.
    let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if before != libc::SIG_ERR {
        place.store(before, Ordering::Relaxed);
    }
}

/// Gives the process back the signals and descriptors that it was started with.
pub fn restore() {
    // SAFETY: the descriptors were opened by `occupy`; nothing of ours uses them from here on. The handlers are those that
    // were there before.
    unsafe {
        libc::signal(libc::SIGPIPE, SIGPIPE.load(Ordering::Relaxed));
        libc::signal(libc::SIGXFSZ, SIGXFSZ.load(Ordering::Relaxed));
        for descriptor in 0..3 {
            if CLOSED.load(Ordering::Relaxed) & 1 << descriptor != 0 {
                libc::close(descriptor);
            }
        }
    }
}
