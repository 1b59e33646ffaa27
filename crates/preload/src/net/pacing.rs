//! Pacing of what a connection sends (Rate Windows, 5.2): the kernel's `SO_MAX_PACING_RATE` below the class's limit.
//!
//! The limit cuts what a program sends into portions, and without more each leaves as one burst at the speed of the
//! interface, to wait in the queue of a slower link where others wait behind it. The kernel spreads it over the time that it
//! has until the next. docs/adr/0036.
//!
//! Which rates are ours shows in the number itself, so that they are known after fork, exec and dup. A program that has set one, or
//! asks for it, finds its own: ours is taken away before the kernel answers.

use core::sync::atomic::Ordering;

use discnice_sys::socket;
use discnice_units::Rate;

use crate::engine;
use crate::net::{SOCKETS, Socket, TOLD};

/// A mark in the lowest bits of a rate that we set.
const MARK: u64 = 0x2a5;
const MARKED: u64 = 0x3ff;
/// What the kernel has where nothing is paced.
const NONE: u64 = socket::UNPACED;

/// The rate to set below a limit: a quarter above it, as headers and what is sent again count for the kernel, and what has
/// waited its turn must not wait again.
const fn above(limit: Rate) -> u64 {
    if limit.is_unlimited() {
        return NONE;
    }
    let limit = limit.get();
    marked(limit.saturating_add(limit / 4).saturating_add(MARKED))
}

/// The rate as we set it.
const fn marked(rate: u64) -> u64 {
    (rate & !MARKED & (NONE >> 1)) | MARK
}

const fn is_ours(rate: u64) -> bool {
    rate & MARKED == MARK && rate < NONE >> 1
}

/// Sets the rate of a connection that follows from its class's limit and from its share of its path, if it has another one.
#[inline]
pub fn follow(fd: i32, socket: &Socket, limit: Rate) {
    let rate = above(limit).min(socket.share().map_or(NONE, marked));
    if rate == NONE && !socket.is_paced() || socket.is_paced_at(rate) {
        return;
    }
    set(fd, socket, rate);
}

//= rate-windows/5.2-packets
#[cold]
fn set(fd: i32, socket: &Socket, rate: u64) {
    // Whatever comes of it, it is not tried again before the limit changes.
    socket.note_paced(rate);
    let Ok(before) = socket::pacing(fd) else { return };
    if before == NONE || is_ours(before) {
        TOLD.store(true, Ordering::Relaxed);
        let _ = socket::set_pacing(fd, rate);
    }
}

/// The program asks for the rate of a socket, or sets it.
#[cold]
pub fn give_back(fd: i32) {
    if engine::is_borrowed() {
        return;
    }
    if let Some(socket) = SOCKETS.get(fd) {
        socket.note_paced(NONE);
    }
    if socket::pacing(fd).is_ok_and(is_ours) {
        let _ = socket::set_pacing(fd, NONE);
    }
}

/// Takes the rate of a connection away.
pub(super) fn take_back(fd: i32, socket: &Socket) {
    if socket.is_paced() {
        give_back(fd);
    }
}
