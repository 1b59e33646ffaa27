//! Changing what an epoll instance reports. epoll(7).

use crate::raw::{Errno, call};

/// What a program registered: `struct epoll_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
pub struct Event {
    /// `EPOLLIN` and the like.
    pub events: u32,
    /// The program's own number or pointer.
    pub data: u64,
}

/// Changes a registration; if the descriptor is ready for what is asked now, that is reported once
/// more, edge-triggered or not. epoll_ctl(2) with `EPOLL_CTL_MOD`.
///
/// # Errors
/// `ENOENT` or `EBADF` when either descriptor has become something else, `EINVAL` for a
/// registration with `EPOLLEXCLUSIVE`.
pub fn modify(epoll: i32, fd: i32, event: Event) -> Result<(), Errno> {
    // SAFETY: the kernel reads one event.
    unsafe { call!(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_MOD, fd, &raw const event) }
        .map(drop)
}
