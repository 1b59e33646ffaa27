//! Holding a class to its network thresholds, inside a program.
//!
//! A thread that would have slept in the call sleeps before it. An event loop must not sleep in a
//! call that it made non-blocking: it gets what has its turn (a short count) or `EAGAIN`, as from a
//! slow network, and then its wait for readiness must tell the same story. So the socket is
//! *parked*: its readiness is withheld until its turn comes, and then given. docs/adr/0010.
//!
//! - `socket`: what is known about one socket;
//! - `transfer`, `vector`: the shapes of calls that send or receive;
//! - `parked`: sockets that wait for their turn;
//! - `pacing`: the kernel spreads what a connection sends; `steering`: it gives way to other machines; `told`: both are taken back;
//! - `epoll`, `poll`, `select`: the waits that withhold their readiness; `waiting`: what
//!   these share.

pub mod epoll;
pub mod pacing;
pub mod parked;
pub mod poll;
pub mod select;
mod socket;
pub mod steering;
pub mod told;
pub mod transfer;
pub mod vector;
pub mod waiting;
pub mod waits;

pub use socket::Socket;

use core::sync::atomic::{AtomicBool, Ordering};

use discnice_interpose::table::{LIMIT, Table};
use discnice_regulator::File;

use crate::{descriptors, engine};

static SOCKETS: Table<Socket> = Table::new();

/// Something is known about some socket: programs without any do not touch the table.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// The kernel was told something of some connection: how fast it sends, or how much may be on its way to it.
static TOLD: AtomicBool = AtomicBool::new(false);

/// What is known about a socket; `None` for numbers that cannot be one or are too high.
#[inline]
fn socket(fd: i32) -> Option<&'static Socket> {
    if !KNOWN.load(Ordering::Relaxed) {
        KNOWN.store(true, Ordering::Relaxed);
    }
    SOCKETS.get(fd)
}

/// Calls `each` for every socket that something may be known about.
fn for_each(each: impl Fn(i32, &Socket)) {
    let mut number = SOCKETS.skip_unused(0);
    while number < LIMIT {
        let fd = number as i32;
        if let Some(socket) = SOCKETS.get(fd) {
            each(fd, socket);
        }
        number = SOCKETS.skip_unused(number + 1);
    }
}

/// The descriptor now means something else, or is about to.
#[inline]
pub fn forget(fd: i32) {
    if KNOWN.load(Ordering::Relaxed)
        && let Some(socket) = SOCKETS.get(fd)
        && !socket.is_blank()
    {
        forget_socket(fd, socket);
    }
}

#[cold]
fn forget_socket(fd: i32, socket: &Socket) {
    // A child of vfork(2) closes its own descriptors, but this is its parent's memory.
    if !engine::is_borrowed() {
        // A forked child forgets the turns of its parent first.
        let _ = engine::regulator();
        parked::release(fd, socket);
        socket.forget();
    }
}

/// The socket's peer may be another one now.
pub fn connected(fd: i32) {
    if KNOWN.load(Ordering::Relaxed)
        && let Some(socket) = SOCKETS.get(fd)
    {
        socket.forget_peer();
    }
}

/// Finds out what the descriptor is, unless that is known.
fn classify(fd: i32) -> Option<&'static File> {
    let file = descriptors::get(fd)?;
    if !file.is_classified() {
        engine::regulator()?.classify(fd, file);
    }
    Some(file)
}

/// Forgets what only the parent of a forked child may do with its sockets: to end their turns, and to take back what
/// the kernel was told of them.
pub fn inherit() {
    parked::forget_all();
    TOLD.store(false, Ordering::Relaxed);
}
