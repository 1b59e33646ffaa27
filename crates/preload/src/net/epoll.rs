//! Waiting with epoll(7), level- or edge-triggered.
//!
//! An epoll instance reports the program's own data, not descriptors, so its reports cannot be
//! filtered. Instead the kernel's registration of a parked socket is changed to leave out what is
//! withheld, and changed back when the turn comes: the kernel then reports the socket once more if it
//! is ready, edge-triggered or not. No other descriptor is delayed meanwhile.

use core::ffi::c_int;
use core::ptr;

use discnice_sys::epoll::Event;
use discnice_sys::time;
use discnice_units::Nanos;

use crate::engine;
use crate::net::parked;
use crate::net::socket;
use crate::net::socket::Registration;
use crate::net::waiting::{limits, next_look, stretch};
use crate::net::waits::{self, Waits};

/// epoll_ctl(2).
#[inline]
pub fn control(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *const Event,
    real: impl FnOnce() -> c_int,
) -> c_int {
    if engine::class().is_none() {
        return real();
    }
    let Some(socket) = socket(fd) else { return real() };
    let changing = socket.change();
    let result = real();
    let Some(changing) = changing.filter(|_| result == 0) else { return result };
    if operation == libc::EPOLL_CTL_DEL {
        changing.register(None);
        return result;
    }
    if !event.is_null() {
        // SAFETY: the kernel has just read this event, so it can be read.
        let event = unsafe { ptr::read_unaligned(event) };
        if changing.registration().is_some_and(|registered| registered.epoll != epoll) {
            // From now on we cannot tell which instance reports the socket, so neither is withheld from.
            parked::release_changing(fd, socket, &changing);
        }
        changing.register(Some(Registration { epoll, event }));
        if socket.parked().0 != 0 {
            parked::withhold(fd, socket, &changing);
        }
    }
    result
}

/// epoll_wait(2) and its relatives. `real` waits for so long, or for ever.
#[inline(never)]
pub fn wait(epoll: c_int, timeout: Option<Nanos>, real: impl Fn(Option<Nanos>) -> c_int) -> c_int {
    waits::note_used();
    let mut now = time::now();
    let end = timeout.map(|timeout| now.plus(timeout));
    loop {
        let next = parked::release_due(now, limits());
        let until = next_look(next, now, end);
        let result = stretch(Waits::Epoll(epoll), until.map(|until| until.since(now)), &real);
        if result != 0 || end.is_some_and(|end| until == Some(end)) {
            return result;
        }
        now = time::now();
    }
}
