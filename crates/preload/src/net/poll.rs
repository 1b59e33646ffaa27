//! Waiting with poll(2): what is reported for parked sockets is taken out again.

use core::ffi::{c_int, c_short};
use core::{ptr, slice};

use discnice_sys::time;
use discnice_units::Nanos;

use crate::net::waiting::{limits, next_look, stretch};
use crate::net::waits::Waits;
use crate::net::{parked, socket};

/// Entries that are waited for precisely; a longer list is looked at every so often.
const FEW: usize = 32;
const OFTEN: Nanos = Nanos::from_millis(5);

/// poll(2) and ppoll(2). `real(list, entries, timeout)` makes the real call.
#[inline(never)]
pub fn poll(
    list: *mut libc::pollfd,
    entries: usize,
    timeout: Option<Nanos>,
    real: impl Fn(*mut libc::pollfd, usize, Option<Nanos>) -> c_int,
) -> c_int {
    let mut now = time::now();
    let end = timeout.map(|timeout| now.plus(timeout));
    loop {
        let next = parked::release_due(now, limits());
        let result = match next {
            // Before anything is waited for, the kernel must say that the list is one.
            Some(_) => real(list, entries, Some(Nanos(0))),
            None => {
                let time = next_look(None, now, end).map(|until| until.since(now));
                stretch(Waits::Poll, time, &|time| real(list, entries, time))
            }
        };
        if result < 0 {
            return result;
        }
        let polled = if entries == 0 {
            &mut []
        } else {
            // SAFETY: the kernel has just read and written these entries.
            unsafe { slice::from_raw_parts_mut(list, entries) }
        };
        let ready = withhold(polled, result);
        now = time::now();
        // What was parked only just now is not known to have a turn yet.
        let next = next.or_else(|| (ready < result).then(|| now.plus(OFTEN)));
        if ready > 0 || end.is_some_and(|end| now >= end) {
            return ready;
        }
        if let Some(until) = next.and_then(|next| next_look(Some(next), now, end)) {
            let waited = wait_for_others(polled, until.since(now), &real);
            if waited < 0 {
                return waited;
            }
            now = time::now();
        }
    }
}

/// Takes out what is parked; returns how many entries remain ready.
fn withhold(polled: &mut [libc::pollfd], result: c_int) -> c_int {
    let mut ready = result;
    for entry in polled {
        let Some(socket) = socket(entry.fd) else { continue };
        socket.note_polled();
        let parked = parked::events(socket.parked()) as c_short;
        if entry.revents & parked != 0 {
            entry.revents &= !parked;
            ready -= c_int::from(entry.revents == 0);
        }
    }
    ready
}

/// Waits for whatever is not parked, for so long at most.
fn wait_for_others(
    polled: &[libc::pollfd],
    time: Nanos,
    real: &impl Fn(*mut libc::pollfd, usize, Option<Nanos>) -> c_int,
) -> c_int {
    let mut others = [libc::pollfd { fd: -1, events: 0, revents: 0 }; FEW];
    if polled.len() > FEW {
        return real(ptr::null_mut(), 0, Some(time.min(OFTEN)));
    }
    for (other, entry) in others.iter_mut().zip(polled) {
        *other = *entry;
        if let Some(socket) = socket(entry.fd) {
            other.events &= !(parked::events(socket.parked()) as c_short);
        }
    }
    real(others.as_mut_ptr(), polled.len(), Some(time))
}
