//! Arrays of buffers: cut to what may pass, as a single buffer is.
//!
//! The arrays lie in the program's memory and are read only where the kernel says that they can be;
//! the kernel then gets our own copy, so that what was measured is what passes.

use core::ffi::{c_int, c_void};
use core::ptr;

use discnice_regulator::Flow;
use discnice_sys::memory;

use crate::engine;
use crate::net::classify;
use crate::net::transfer::{Call, message, transfer};

/// Arrays of more buffers pass as they are. The copy lies on the program's stack.
const MOST: usize = 16;

/// Bytes counted for a message if its buffers cannot be read: what a packet of Ethernet carries.
const PACKET: usize = 1472;

type Buffers = [libc::iovec; MOST];

/// Address of a program's array of buffers, as claimed.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    first: *const libc::iovec,
    count: usize,
}

impl Claimed {
    /// What a call was given; `None` where it cannot be read, or is too long for us.
    fn check(first: *const libc::iovec, count: usize) -> Option<Self> {
        let fits = (1..=MOST).contains(&count);
        let readable = || memory::can_read(first as usize, count * size_of::<libc::iovec>());
        (fits && readable()).then_some(Self { first, count })
    }

    fn buffers(self) -> impl Iterator<Item = libc::iovec> {
        // SAFETY: the array can be read, as the kernel said.
        (0..self.count).map(move |at| unsafe { ptr::read_unaligned(self.first.add(at)) })
    }

    /// Bytes of all buffers; `None` if the kernel will refuse them.
    fn total(self) -> Option<usize> {
        let total = self.buffers().try_fold(0usize, |sum, buffer| sum.checked_add(buffer.iov_len));
        total.filter(|total| *total <= isize::MAX as usize)
    }

    /// Buffers for `length` bytes behind the first `done`; returns how many buffers.
    fn part(self, mut done: usize, mut length: usize, into: &mut Buffers) -> usize {
        let mut used = 0;
        for buffer in self.buffers() {
            let skipped = done.min(buffer.iov_len);
            let taken = length.min(buffer.iov_len - skipped);
            done -= skipped;
            length -= taken;
            if taken > 0
                && let Some(to) = into.get_mut(used)
            {
                *to = libc::iovec {
                    iov_base: buffer.iov_base.wrapping_byte_add(skipped),
                    iov_len: taken,
                };
                used += 1;
            }
        }
        used
    }
}

const NONE: Buffers = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MOST];

/// Returns true if a call on the descriptor is regulated as one on a socket.
#[inline(always)]
pub fn concerns(fd: c_int) -> bool {
    engine::minds_traffic() && classify(fd).is_some_and(discnice_regulator::File::is_socket)
}

/// readv(2) and writev(2) on a socket. `real(buffers, count)` makes the real call.
#[inline(never)]
pub fn vector(
    flow: Flow,
    fd: c_int,
    first: *const c_void,
    count: c_int,
    real: impl Fn(*const c_void, c_int) -> isize,
) -> isize {
    let claimed = Claimed::check(first.cast(), usize::try_from(count).unwrap_or(0));
    let Some((claimed, total)) = claimed.and_then(|claimed| Some((claimed, claimed.total()?)))
    else {
        let call = Call { fd, flow, count: PACKET, flags: 0, whole: true };
        return transfer(call, |_, _| real(first, count));
    };
    let call = Call { fd, flow, count: total, flags: 0, whole: false };
    transfer(call, |done, length| {
        if done == 0 && length == total {
            return real(first, count);
        }
        let mut part = NONE;
        let used = claimed.part(done, length, &mut part);
        real(part.as_ptr().cast(), used as c_int)
    })
}

/// sendmsg(2). A stream's message without further data can be cut; `real(header)` makes the real
/// call.
#[inline(never)]
pub fn send(
    fd: c_int,
    program: *const libc::msghdr,
    flags: c_int,
    local: impl Fn(isize) -> Option<bool>,
    real: impl Fn(*const libc::msghdr) -> isize,
) -> isize {
    let call = |count, whole| Call { fd, flow: Flow::Up, count, flags, whole };
    let bytes = |result: isize| result.max(0) as u64;
    let header = memory::can_read(program as usize, size_of::<libc::msghdr>()).then(|| {
        // SAFETY: it can be read, as the kernel just said.
        unsafe { ptr::read_unaligned(program) }
    });
    let buffers = header.and_then(|header| Claimed::check(header.msg_iov, header.msg_iovlen));
    let measured = buffers.and_then(|buffers| Some((buffers, buffers.total()?)));
    let (Some(mut header), Some((buffers, total))) = (header, measured) else {
        return message(call(PACKET, true), local, bytes, || real(program));
    };
    if !header.msg_name.is_null() || header.msg_controllen > 0 {
        return message(call(total, true), local, bytes, || real(program));
    }
    header.msg_control = ptr::null_mut();
    transfer(call(total, false), |done, length| {
        if done == 0 && length == total {
            return real(program);
        }
        let mut part = NONE;
        let mut header = header;
        header.msg_iovlen = buffers.part(done, length, &mut part);
        header.msg_iov = part.as_mut_ptr();
        real(&raw const header)
    })
}

/// The bytes that recvmsg(2) can receive, as far as known, and those of their source.
pub fn room(program: *const libc::msghdr) -> (usize, u32) {
    if !memory::can_read(program as usize, size_of::<libc::msghdr>()) {
        return (PACKET, 0);
    }
    // SAFETY: it can be read, as the kernel just said.
    let header = unsafe { ptr::read_unaligned(program) };
    let claimed = Claimed::check(header.msg_iov, header.msg_iovlen);
    (claimed.and_then(Claimed::total).unwrap_or(PACKET), header.msg_namelen)
}
