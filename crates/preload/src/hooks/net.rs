//! Calls that send and receive: send(2), recv(2) and their relatives.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::offset_of;
use core::{ptr, slice};

use discnice_regulator::Flow;
use discnice_sys::memory;
use discnice_sys::socket::Machine;

use crate::hooks::definition::hooks;
use crate::net::transfer::{Call, message, transfer};
use crate::net::vector;
use crate::{files, net};

/// Bytes counted for a message of a size only the kernel knows: what a packet of Ethernet carries.
const PACKET: usize = 1472;

const fn call(flow: Flow, fd: c_int, count: usize, flags: c_int) -> Call {
    Call { fd, flow, count, flags, whole: false }
}

/// Returns true if an address, which the kernel has just read or written, is one of this machine.
/// `None` for a null pointer.
fn is_local(address: *const c_void, length: u32) -> Option<bool> {
    if address.is_null() {
        return None;
    }
    // SAFETY: so many bytes were there for the kernel.
    let bytes = unsafe { slice::from_raw_parts(address.cast::<u8>(), length as usize) };
    match Machine::of(bytes) {
        Machine::Unknown => None,
        machine => Some(machine.is_loopback()),
    }
}

/// Returns how many bytes of a source the program has room for. It is read before the call: the kernel puts the length of
/// the whole address there, and writes as much of the address as there is room for. recvfrom(2)
fn room(fd: c_int, length: *const c_uint) -> u32 {
    if !vector::concerns(fd) || !memory::can_read(length as usize, size_of::<c_uint>()) {
        return 0;
    }
    // SAFETY: it can be read, as the kernel just said.
    unsafe { ptr::read_unaligned(length) }
}

/// Bytes of the messages that the kernel has just counted.
fn moved(messages: *const libc::mmsghdr, result: isize) -> u64 {
    let count = usize::try_from(result).unwrap_or(0);
    if messages.is_null() || count == 0 {
        return 0;
    }
    // SAFETY: the kernel has just written the lengths of so many messages.
    let messages = unsafe { slice::from_raw_parts(messages, count) };
    messages.iter().map(|message| u64::from(message.msg_len)).sum()
}

/// Returns true if the destination or source of a message, which the kernel has just read or
/// written, is one of this machine. It has room for so many bytes of it.
fn is_message_local(header: *const libc::msghdr, room: u32, result: isize) -> Option<bool> {
    if result < 0 || header.is_null() {
        return None;
    }
    // SAFETY: the kernel has just read this header.
    let header = unsafe { ptr::read_unaligned(header) };
    is_local(header.msg_name, header.msg_namelen.min(room))
}

const fn bytes(result: isize) -> u64 {
    if result < 0 { 0 } else { result as u64 }
}

/// sendmmsg(2), which `one` makes.
pub(super) fn send_many(
    fd: c_int,
    messages: *const libc::mmsghdr,
    flags: c_int,
    one: impl Fn() -> isize,
) -> isize {
    many(call(Flow::Up, fd, PACKET, flags), messages, u32::MAX, one)
}

/// recvmmsg(2), which `one` makes.
pub(super) fn receive_many(
    fd: c_int,
    messages: *const libc::mmsghdr,
    flags: c_int,
    one: impl Fn() -> isize,
) -> isize {
    let length = messages.wrapping_byte_add(offset_of!(libc::msghdr, msg_namelen));
    many(call(Flow::Down, fd, PACKET, flags), messages, room(fd, length.cast()), one)
}

/// A call that moves several messages, of which the first has room for so many bytes of an address.
fn many(call: Call, messages: *const libc::mmsghdr, room: u32, one: impl Fn() -> isize) -> isize {
    let local = |result| is_message_local(messages.cast(), room, if result > 0 { 0 } else { -1 });
    message(call, local, |result| moved(messages, result), one)
}

/// Returns true if a socket option is the one that we set.
pub const fn is_pacing(level: c_int, option: c_int) -> bool {
    level == libc::SOL_SOCKET && option == libc::SO_MAX_PACING_RATE
}

hooks! {
    /// getsockopt(2): the program finds the rate that it set, or none.
    fn [getsockopt] (fd: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut c_uint) -> c_int, real => {
        if is_pacing(level, option) {
            net::pacing::give_back(fd);
        }
        // SAFETY: the program's own arguments.
        unsafe { real(fd, level, option, value, length) }
    }

    /// setsockopt(2): a rate that the program sets is in the place of ours.
    fn [setsockopt] (fd: c_int, level: c_int, option: c_int, value: *const c_void, length: c_uint) -> c_int, real => {
        if is_pacing(level, option) {
            net::pacing::give_back(fd);
        }
        // SAFETY: the program's own arguments.
        unsafe { real(fd, level, option, value, length) }
    }

    /// send(2).
    fn [send] (fd: c_int, buffer: *const c_void, count: usize, flags: c_int) -> isize, real => {
        transfer(call(Flow::Up, fd, count, flags), |done, length| {
            // SAFETY: the program's own arguments, or a part of its buffer.
            unsafe { real(fd, buffer.wrapping_byte_add(done), length, flags) }
        })
    }

    /// sendto(2): a destination means a message, or a connection that is opened by it.
    fn [sendto] (fd: c_int, buffer: *const c_void, count: usize, flags: c_int, to: *const c_void, length: c_uint) -> isize, real => {
        if to.is_null() {
            return transfer(call(Flow::Up, fd, count, flags), |done, part| {
                // SAFETY: the program's own arguments, or a part of its buffer.
                unsafe { real(fd, buffer.wrapping_byte_add(done), part, flags, to, length) }
            });
        }
        // SAFETY: the program's own arguments.
        let one = || unsafe { real(fd, buffer, count, flags, to, length) };
        message(call(Flow::Up, fd, count, flags), |_| is_local(to, length), bytes, one)
    }

    /// sendmsg(2).
    fn [sendmsg] (fd: c_int, header: *const libc::msghdr, flags: c_int) -> isize, real => {
        // SAFETY: the program's own arguments, or a part of its buffers.
        let one = |header| unsafe { real(fd, header, flags) };
        if !vector::concerns(fd) {
            return one(header);
        }
        vector::send(fd, header, flags, |result| is_message_local(header, u32::MAX, result), one)
    }

    /// sendmmsg(2).
    fn [sendmmsg] (fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        send_many(fd, messages, flags, || unsafe { real(fd, messages, count, flags) as isize }) as c_int
    }

    /// recv(2).
    fn [recv] (fd: c_int, buffer: *mut c_void, count: usize, flags: c_int) -> isize, real => {
        transfer(call(Flow::Down, fd, count, flags), |done, length| {
            // SAFETY: the program's own arguments, or a part of its buffer.
            unsafe { real(fd, buffer.wrapping_byte_add(done), length, flags) }
        })
    }

    /// recv(2) as compiled with `_FORTIFY_SOURCE`: the real function checks `size`.
    fn [__recv_chk] (fd: c_int, buffer: *mut c_void, count: usize, size: usize, flags: c_int) -> isize, real => {
        transfer(call(Flow::Down, fd, count, flags), |done, length| {
            let too_long = count > size;
            let (length, size) = if too_long { (count, size) } else { (length, size - done) };
            // SAFETY: the program's own arguments, or a part of its buffer.
            unsafe { real(fd, buffer.wrapping_byte_add(done), length, size, flags) }
        })
    }

    /// recvfrom(2).
    fn [recvfrom] (fd: c_int, buffer: *mut c_void, count: usize, flags: c_int, from: *mut c_void, length: *mut c_uint) -> isize, real => {
        if from.is_null() {
            return transfer(call(Flow::Down, fd, count, flags), |done, part| {
                // SAFETY: the program's own arguments, or a part of its buffer.
                unsafe { real(fd, buffer.wrapping_byte_add(done), part, flags, from, length) }
            });
        }
        // SAFETY: the program's own arguments.
        let one = || unsafe { real(fd, buffer, count, flags, from, length) };
        let room = room(fd, length);
        // SAFETY: the kernel has just written the length.
        let local = |_| is_local(from, unsafe { ptr::read_unaligned(length) }.min(room));
        message(call(Flow::Down, fd, count, flags), local, bytes, one)
    }

    /// recvfrom(2) as compiled with `_FORTIFY_SOURCE`.
    fn [__recvfrom_chk] (fd: c_int, buffer: *mut c_void, count: usize, size: usize, flags: c_int, from: *mut c_void, length: *mut c_uint) -> isize, real => {
        // SAFETY: the program's own arguments.
        let one = || unsafe { real(fd, buffer, count, size, flags, from, length) };
        let room = if from.is_null() { 0 } else { room(fd, length) };
        let local = |_| {
            // SAFETY: the kernel has just written the length, if there is one.
            if from.is_null() { None } else { is_local(from, unsafe { ptr::read_unaligned(length) }.min(room)) }
        };
        message(call(Flow::Down, fd, count, flags), local, bytes, one)
    }

    /// recvmsg(2).
    fn [recvmsg] (fd: c_int, header: *mut libc::msghdr, flags: c_int) -> isize, real => {
        // SAFETY: the program's own arguments.
        let one = || unsafe { real(fd, header, flags) };
        if !vector::concerns(fd) {
            return one();
        }
        let (count, room) = vector::room(header);
        message(call(Flow::Down, fd, count, flags), |result| is_message_local(header, room, result), bytes, one)
    }

    /// recvmmsg(2).
    fn [recvmmsg] (fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int, timeout: *mut c_void) -> c_int, real => {
        // SAFETY: the program's own arguments.
        receive_many(fd, messages, flags, || unsafe { real(fd, messages, count, flags, timeout) as isize }) as c_int
    }

    /// connect(2).
    fn [connect] (fd: c_int, address: *const c_void, length: c_uint) -> c_int, real => {
        net::connected(fd);
        // SAFETY: the program's own arguments.
        unsafe { real(fd, address, length) }
    }

    /// socket(2).
    fn [socket] (domain: c_int, kind: c_int, protocol: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        files::opened(unsafe { real(domain, kind, protocol) })
    }

    /// accept(2).
    fn [accept] (fd: c_int, address: *mut c_void, length: *mut c_uint) -> c_int, real => {
        // SAFETY: the program's own arguments.
        files::opened(unsafe { real(fd, address, length) })
    }

    /// accept4(2).
    fn [accept4] (fd: c_int, address: *mut c_void, length: *mut c_uint, flags: c_int) -> c_int, real => {
        // SAFETY: the program's own arguments.
        files::opened(unsafe { real(fd, address, length, flags) })
    }
}
