//! Giving way to other machines on the uplink from inside a program: where the watcher of its class cannot borrow connections, it says
//! what each may do ([`discnice_ledger::path_shares`]), and the calls that send or receive tell the kernel. docs/adr/0047.

use core::sync::atomic::Ordering;

use discnice_ledger::path_shares::PathShares;
use discnice_sys::socket::{self, Machine};
use discnice_sys::tcp::{self, WINDOW_MAX, WINDOW_MIN};
use discnice_units::Moment;

use crate::net::{Socket, TOLD};

/// Follows what is said of the path of a connection, if that is new.
pub fn follow(fd: i32, socket: &Socket, shares: &PathShares, now: Moment) {
    let version = shares.version(now);
    if !socket.follows(version) {
        steer(fd, socket, shares, version);
    }
}

#[cold]
fn steer(fd: i32, socket: &Socket, shares: &PathShares, version: u32) {
    socket.note_followed(version);
    let share = match socket::peer(fd) {
        Ok(Machine::Host(peer)) if version != 0 => shares.of(peer),
        _ => None,
    };
    // The next call that sends paces the connection.
    socket.note_share(share.and_then(|share| share.rate));
    open(fd, socket, share.and_then(|share| share.window));
}

/// Has so much be on its way to a connection at most, or as much as the kernel likes.
fn open(fd: i32, socket: &Socket, window: Option<u64>) {
    match window {
        Some(window) => {
            TOLD.store(true, Ordering::Relaxed);
            socket.note_narrowed(true);
            let _ = tcp::set_window(fd, window.clamp(WINDOW_MIN, WINDOW_MAX) as u32);
        }
        None if socket.is_narrowed() => {
            socket.note_narrowed(false);
            let _ = tcp::set_window(fd, WINDOW_MAX as u32);
        }
        None => {}
    }
}

/// Leaves a connection as it was.
pub(super) fn take_back(fd: i32, socket: &Socket) {
    socket.note_share(None);
    open(fd, socket, None);
}
