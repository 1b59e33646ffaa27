//! Calls that wait until descriptors are ready: epoll(7), poll(2), select(2).

use core::ffi::{c_int, c_void};
use core::ptr;

use discnice_interpose::timeout::{Claim, claimed, from_millis, to_millis, to_pair};
use discnice_sys::epoll::Event;
use discnice_units::{Moment, Nanos};

use crate::hooks::definition::hooks;
use crate::net::waits::Waits;
use crate::net::{epoll, poll, select, waiting};

/// Parts of a second in a `struct timespec` and in a `struct timeval`.
const SPEC: u64 = 1_000_000_000;
const VAL: u64 = 1_000_000;

/// Calls `real` with a pointer to a time of our own, or with none.
fn with_pair(time: Option<Nanos>, parts: u64, real: impl FnOnce(*mut [i64; 2]) -> c_int) -> c_int {
    match time {
        Some(time) => {
            let mut pair = to_pair(time, parts);
            real(&raw mut pair)
        }
        None => real(ptr::null_mut()),
    }
}

/// select(2) tells how much of the time is left.
fn leave(timeout: *mut [i64; 2], begun: Moment, asked: Option<Nanos>) {
    let Some(asked) = asked else { return };
    let left = begun.plus(asked).since(discnice_sys::time::now());
    if discnice_sys::memory::can_write(timeout as usize, size_of::<[i64; 2]>()) {
        // SAFETY: it can be written, as the kernel just said.
        unsafe { timeout.write_unaligned(to_pair(left, VAL)) };
    }
}

hooks! {
    /// epoll_ctl(2).
    fn [epoll_ctl] (epoll: c_int, operation: c_int, fd: c_int, event: *mut c_void) -> c_int, real => {
        epoll::control(epoll, operation, fd, event.cast::<Event>(), || {
            // SAFETY: the program's own arguments.
            unsafe { real(epoll, operation, fd, event) }
        })
    }

    /// epoll_wait(2).
    fn [epoll_wait] (epoll: c_int, events: *mut c_void, most: c_int, timeout: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments, or a shorter time.
        let once = |timeout| unsafe { real(epoll, events, most, timeout) };
        if !waiting::is_regulated() {
            return waiting::listed(Waits::Epoll(epoll), || once(timeout));
        }
        epoll::wait(epoll, from_millis(timeout), |time| once(to_millis(time)))
    }

    /// epoll_pwait(2).
    fn [epoll_pwait] (epoll: c_int, events: *mut c_void, most: c_int, timeout: c_int, signals: *const c_void) -> c_int, real => {
        // SAFETY: the program's own arguments, or a shorter time.
        let once = |timeout| unsafe { real(epoll, events, most, timeout, signals) };
        if !waiting::is_regulated() {
            return waiting::listed(Waits::Epoll(epoll), || once(timeout));
        }
        epoll::wait(epoll, from_millis(timeout), |time| once(to_millis(time)))
    }

    /// epoll_pwait2(2).
    fn [epoll_pwait2] (epoll: c_int, events: *mut c_void, most: c_int, timeout: *mut [i64; 2], signals: *const c_void) -> c_int, real => {
        // SAFETY: the program's own arguments, or a shorter time.
        let once = |timeout: *mut [i64; 2]| unsafe { real(epoll, events, most, timeout, signals) };
        match claimed(timeout, SPEC) {
            Claim::Valid(time) if waiting::is_regulated() => {
                epoll::wait(epoll, time, |time| with_pair(time, SPEC, once))
            }
            _ => waiting::listed(Waits::Epoll(epoll), || once(timeout)),
        }
    }

    /// poll(2).
    fn [poll] (list: *mut libc::pollfd, entries: usize, timeout: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments, or a list and a time of ours.
        let once = |list, entries, timeout| unsafe { real(list, entries, timeout) };
        if !waiting::is_regulated() {
            return waiting::listed(Waits::Poll, || once(list, entries, timeout));
        }
        poll::poll(list, entries, from_millis(timeout), |list, entries, time| {
            once(list, entries, to_millis(time))
        })
    }

    /// poll(2) as compiled with `_FORTIFY_SOURCE`: the real function checks `size`.
    fn [__poll_chk] (list: *mut libc::pollfd, entries: usize, timeout: c_int, size: usize) -> c_int, real => {
        // SAFETY: the program's own arguments, or a list and a time of ours.
        let once = |list, entries, timeout| unsafe {
            real(list, entries, timeout, size.max(entries * size_of::<libc::pollfd>()))
        };
        if !waiting::is_regulated() || size / size_of::<libc::pollfd>() < entries {
            // SAFETY: the program's own arguments.
            return waiting::listed(Waits::Poll, || unsafe { real(list, entries, timeout, size) });
        }
        poll::poll(list, entries, from_millis(timeout), |list, entries, time| {
            once(list, entries, to_millis(time))
        })
    }

    /// ppoll(2).
    fn [ppoll] (list: *mut libc::pollfd, entries: usize, timeout: *mut [i64; 2], signals: *const c_void) -> c_int, real => {
        // SAFETY: the program's own arguments, or a list and a time of ours.
        let once = |list, entries, timeout: *mut [i64; 2]| unsafe { real(list, entries, timeout, signals) };
        match claimed(timeout, SPEC) {
            Claim::Valid(time) if waiting::is_regulated() => {
                poll::poll(list, entries, time, |list, entries, time| {
                    with_pair(time, SPEC, |time| once(list, entries, time))
                })
            }
            _ => waiting::listed(Waits::Poll, || once(list, entries, timeout)),
        }
    }

    /// ppoll(2) as compiled with `_FORTIFY_SOURCE`.
    fn [__ppoll_chk] (list: *mut libc::pollfd, entries: usize, timeout: *mut [i64; 2], signals: *const c_void, size: usize) -> c_int, real => {
        // SAFETY: the program's own arguments, or a list and a time of ours.
        let once = |list, entries, timeout: *mut [i64; 2]| unsafe {
            real(list, entries, timeout, signals, size.max(entries * size_of::<libc::pollfd>()))
        };
        match claimed(timeout, SPEC) {
            Claim::Valid(time)
                if waiting::is_regulated() && size / size_of::<libc::pollfd>() >= entries =>
            {
                poll::poll(list, entries, time, |list, entries, time| {
                    with_pair(time, SPEC, |time| once(list, entries, time))
                })
            }
            // SAFETY: the program's own arguments.
            _ => waiting::listed(Waits::Poll, || unsafe { real(list, entries, timeout, signals, size) }),
        }
    }

    /// select(2).
    fn [select] (limit: c_int, reading: *mut libc::fd_set, writing: *mut libc::fd_set, other: *mut libc::fd_set, timeout: *mut [i64; 2]) -> c_int, real => {
        // SAFETY: the program's own arguments, or sets and a time of ours.
        let once = |[reading, writing, other]: select::Pointers, timeout: *mut [i64; 2]| unsafe {
            real(limit, reading, writing, other, timeout)
        };
        let sets = [reading, writing, other];
        match claimed(timeout, VAL) {
            Claim::Valid(time) if waiting::is_regulated() => {
                let begun = discnice_sys::time::now();
                let found = select::select(limit, sets, time, |sets, time| {
                    with_pair(time, VAL, |time| once(sets, time))
                });
                leave(timeout, begun, time);
                found
            }
            _ => waiting::listed(Waits::Poll, || once(sets, timeout)),
        }
    }

    /// pselect(2).
    fn [pselect] (limit: c_int, reading: *mut libc::fd_set, writing: *mut libc::fd_set, other: *mut libc::fd_set, timeout: *mut [i64; 2], signals: *const c_void) -> c_int, real => {
        // SAFETY: the program's own arguments, or sets and a time of ours.
        let once = |[reading, writing, other]: select::Pointers, timeout: *mut [i64; 2]| unsafe {
            real(limit, reading, writing, other, timeout, signals)
        };
        let sets = [reading, writing, other];
        match claimed(timeout, SPEC) {
            Claim::Valid(time) if waiting::is_regulated() => {
                select::select(limit, sets, time, |sets, time| {
                    with_pair(time, SPEC, |time| once(sets, time))
                })
            }
            _ => waiting::listed(Waits::Poll, || once(sets, timeout)),
        }
    }
}
