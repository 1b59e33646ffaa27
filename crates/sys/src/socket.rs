//! What network regulation asks the kernel about one socket.
//!
//! As with files, the descriptor is the program's and may become anything at any moment; every
//! call here only asks.

mod peer;

use discnice_units::Nanos;

pub use peer::{Address, Machine, is_local, peer};

use crate::raw::{Errno, call};

/// What a socket is, as far as network traffic goes. socket(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketKind {
    /// Set for IPv4 and IPv6; others (unix(7), netlink(7), vsock(7)) never reach a network
    /// interface through the layers that we regulate.
    pub internet: bool,
    /// Set for a stream of bytes, which may be cut anywhere; clear for messages. Over the internet protocols that is TCP: others
    /// (SCTP) call connections streams that carry messages.
    pub stream: bool,
}

/// `SO_DOMAIN`, `SO_TYPE` and `SO_PROTOCOL`.
///
/// # Errors
/// `ENOTSOCK`, `EBADF`.
pub fn kind(fd: i32) -> Result<SocketKind, Errno> {
    let domain = number(fd, libc::SO_DOMAIN)?;
    let internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let stream = number(fd, libc::SO_TYPE)? == libc::SOCK_STREAM
        && (!internet || is_tcp(number(fd, libc::SO_PROTOCOL)?));
    Ok(SocketKind { internet, stream })
}

const fn is_tcp(protocol: i32) -> bool {
    matches!(protocol, libc::IPPROTO_TCP | libc::IPPROTO_MPTCP)
}

fn number(fd: i32, option: i32) -> Result<i32, Errno> {
    let (mut value, mut length) = (0i32, size_of::<i32>() as u32);
    let (to, size) = (&raw mut value, &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `value` and then the length.
    unsafe { call!(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, option, to, size)? };
    Ok(value)
}

/// Lets at most about `bytes` of a TCP stream wait in the socket before they are sent, unless the
/// program has set a bound of its own. tcp(7), `TCP_NOTSENT_LOWAT`
///
/// # Errors
/// `EOPNOTSUPP`, `ENOPROTOOPT`: it is not TCP.
pub fn limit_unsent(fd: i32, bytes: u32) -> Result<(), Errno> {
    let (mut now, mut length) = (0u32, size_of::<u32>() as u32);
    let (option, to, size) = (libc::TCP_NOTSENT_LOWAT, &raw mut now, &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `now` and then the length.
    unsafe { call!(libc::SYS_getsockopt, fd, libc::IPPROTO_TCP, option, to, size)? };
    if now == 0 {
        let from = &raw const bytes;
        // SAFETY: the kernel reads `length` bytes, those of `bytes`.
        unsafe { call!(libc::SYS_setsockopt, fd, libc::IPPROTO_TCP, option, from, length)? };
    }
    Ok(())
}

/// A rate for [`set_pacing`] that is none.
pub const UNPACED: u64 = u64::MAX;

/// The most bytes a second that the socket sends; [`UNPACED`] for any. socket(7), `SO_MAX_PACING_RATE`
///
/// # Errors
/// `ENOTSOCK`, `EBADF`.
pub fn pacing(fd: i32) -> Result<u64, Errno> {
    let (mut rate, mut length) = (0u64, size_of::<u64>() as u32);
    let (to, size) = (&raw mut rate, &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `rate` and then the length.
    unsafe {
        call!(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, to, size)?
    };
    // A kernel of 32 bits has a number of 32 bits, in the lower half on all machines that this library is built for.
    let is_any = length == 4 && rate == u64::from(u32::MAX);
    Ok(if is_any { UNPACED } else { rate })
}

/// Sets the most bytes a second that the socket sends; [`UNPACED`] for any.
///
/// # Errors
/// As [`pacing`].
pub fn set_pacing(fd: i32, rate: u64) -> Result<(), Errno> {
    let (from, length) = (&raw const rate, size_of::<u64>());
    // SAFETY: the kernel reads `length` bytes, those of `rate`.
    unsafe {
        call!(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, from, length)?
    };
    Ok(())
}

/// What says that a program, or we, have fixed the size of the receive buffer. linux/socket.h
const RECEIVE_LOCK: u32 = 2;

/// Returns true if the size of the receive buffer is fixed, so that the kernel does not change it. socket(7),
/// `SO_BUF_LOCK`
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.15.
pub fn has_fixed_buffer(fd: i32) -> Result<bool, Errno> {
    Ok(number(fd, libc::SO_BUF_LOCK)?.cast_unsigned() & RECEIVE_LOCK != 0)
}

/// About how many bytes wait in the receive buffer at most, as [`fix_buffer`] takes it.
///
/// # Errors
/// `ENOTSOCK`, `EBADF`.
pub fn buffer(fd: i32) -> Result<u32, Errno> {
    Ok(number(fd, libc::SO_RCVBUF)?.cast_unsigned() / 2)
}

/// Fixes the size of the receive buffer so that about so many bytes wait in it at most; false if the system allows less, and the
/// kernel goes on choosing it. socket(7), `SO_RCVBUF`
///
/// # Errors
/// As [`has_fixed_buffer`].
pub fn fix_buffer(fd: i32, bytes: u32) -> Result<bool, Errno> {
    set_number(fd, libc::SO_RCVBUF, bytes.cast_signed())?;
    // The kernel adds as much for what it needs itself.
    let fits = number(fd, libc::SO_RCVBUF)?.cast_unsigned() >= bytes.saturating_mul(2);
    if !fits {
        free_buffer(fd)?;
    }
    Ok(fits)
}

/// Leaves the size of the receive buffer to the kernel.
///
/// # Errors
/// As [`has_fixed_buffer`].
pub fn free_buffer(fd: i32) -> Result<(), Errno> {
    let locks = number(fd, libc::SO_BUF_LOCK)?;
    set_number(fd, libc::SO_BUF_LOCK, locks & !RECEIVE_LOCK.cast_signed())
}

fn set_number(fd: i32, option: i32, value: i32) -> Result<(), Errno> {
    let (from, length) = (&raw const value, size_of::<i32>());
    // SAFETY: the kernel reads `length` bytes, those of `value`.
    unsafe { call!(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, option, from, length)? };
    Ok(())
}

/// How long a blocking call may last: `SO_RCVTIMEO` or `SO_SNDTIMEO`; `None` for ever.
///
/// # Errors
/// `ENOTSOCK`, `EBADF`.
pub fn timeout(fd: i32, receiving: bool) -> Result<Option<Nanos>, Errno> {
    let option = if receiving { libc::SO_RCVTIMEO } else { libc::SO_SNDTIMEO };
    let (mut time, mut length) = ([0i64; 2], size_of::<[i64; 2]>() as u32);
    let (to, size) = (&raw mut time, &raw mut length);
    // SAFETY: the kernel writes one struct timeval, two 64-bit numbers, and the length.
    unsafe { call!(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, option, to, size)? };
    let [seconds, micros] = time.map(|part| part.max(0) as u64);
    let nanos = seconds.saturating_mul(Nanos::SECOND.0).saturating_add(micros.saturating_mul(1000));
    Ok((nanos > 0).then_some(Nanos(nanos)))
}

/// Bytes that can be received at once; of a socket for messages, those of the next one. ioctl(2)
/// with `FIONREAD`.
///
/// # Errors
/// `EINVAL` for a socket that listens.
pub fn available(fd: i32) -> Result<u64, Errno> {
    let mut bytes = 0i32;
    // SAFETY: the kernel writes one int.
    unsafe { call!(libc::SYS_ioctl, fd, libc::FIONREAD, &raw mut bytes)? };
    Ok(bytes.max(0) as u64)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn connections_that_carry_messages_are_no_streams() {
        assert!(is_tcp(libc::IPPROTO_MPTCP) && !is_tcp(libc::IPPROTO_SCTP));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (local, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let kind_of = |internet, stream| Ok(SocketKind { internet, stream });
        assert_eq!(kind(listener.as_raw_fd()), kind_of(true, true));
        assert_eq!(kind(datagrams.as_raw_fd()), kind_of(true, false));
        assert_eq!(kind(local.as_raw_fd()), kind_of(false, true));
    }
}
