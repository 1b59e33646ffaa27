//! What is asked about a TCP connection, and how much it may be told to receive; [`crate::socket::set_pacing`] tells it how fast
//! to send.
//!
//! As with all descriptors of programs, it may become anything at any moment; [`cookie`] tells.

use discnice_units::Nanos;

use crate::raw::{Errno, call};

/// `tcp_info` of linux/tcp.h as far as it is used, which is since Linux 4.18.
const INFO: usize = 160;
/// States in which data can flow, one bit for each: established, and closed by one end only (`TCP_FIN_WAIT1`,
/// `TCP_FIN_WAIT2`, `TCP_CLOSE_WAIT`).
pub const OPEN: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;
/// The option bit of timestamps.
const TIMESTAMPS: u8 = 1;

/// A connection at one moment. tcp(7), `TCP_INFO`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Set while data can flow, at least one way.
    pub is_open: bool,
    /// Set if both ends send times, without which a receiver knows of no round trip.
    pub has_times: bool,
    /// The smoothed round trip of what is sent; zero if unknown.
    pub trip: Nanos,
    /// The smoothed round trip of what is received: from an acknowledgement to the data that it lets come.
    pub trip_received: Nanos,
    /// The least round trip of the last minutes, that of the connection's beginning among them.
    pub least: Nanos,
    /// Bytes that were sent and acknowledged.
    pub sent: u64,
    /// Bytes that were received.
    pub received: u64,
}

impl Info {
    /// The smoothed round trip that a receiver waits for what it lets come, or the best estimate of it.
    #[must_use]
    pub fn trip_to_receiver(&self) -> Nanos {
        if self.has_times { self.trip_received } else { self.trip }
    }

    /// Reads what the kernel wrote; `None` if that is less than is used.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= INFO - 8).then(|| Self::of(bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).copied();
        let short = |at| u64::from(word(at).map_or(0, u32::from_ne_bytes));
        let long = |at: usize| {
            let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        };
        let micros = |at| match short(at) {
            // What the kernel does not know yet.
            most if most == u64::from(u32::MAX) => Nanos(0),
            micros => Nanos(micros * 1000),
        };
        let [state, .., options, _, _] = *bytes.first_chunk::<8>().unwrap_or(&[0; 8]);
        Self {
            is_open: 1u32.checked_shl(state.into()).is_some_and(|bit| OPEN & bit != 0),
            has_times: options & TIMESTAMPS != 0,
            trip: micros(68),
            trip_received: micros(92),
            least: micros(148),
            sent: long(120),
            received: long(128),
        }
    }
}

/// Asks about a connection.
///
/// # Errors
/// `EOPNOTSUPP`, `ENOPROTOOPT`: it is not TCP; `EINVAL` of a kernel that tells less.
pub fn info(fd: i32) -> Result<Info, Errno> {
    let (mut bytes, mut length) = ([0u8; INFO], INFO as u32);
    let (to, size) = (bytes.as_mut_ptr(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `bytes` and then the length.
    unsafe { call!(libc::SYS_getsockopt, fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, size)? };
    bytes.get(..length as usize).and_then(Info::parse).ok_or(Errno(libc::EINVAL))
}

/// The number that tells a socket from all others since the machine was started.
///
/// # Errors
/// `ENOTSOCK`.
pub fn cookie(fd: i32) -> Result<u64, Errno> {
    let (mut value, mut length) = (0u64, size_of::<u64>() as u32);
    let (option, to, size) = (libc::SO_COOKIE, &raw mut value, &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `value` and then the length.
    unsafe { call!(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, option, to, size)? };
    Ok(value)
}

/// Least window of a connection: a segment.
pub const WINDOW_MIN: u64 = 1460;
/// Greatest window of a connection: more than the kernel ever gives.
pub const WINDOW_MAX: u64 = 1 << 30;

/// How many bytes may be on their way to it at most. tcp(7), `TCP_WINDOW_CLAMP`
///
/// # Errors
/// As [`set_window`].
pub fn window(fd: i32) -> Result<u32, Errno> {
    let (mut bytes, mut length) = (0u32, size_of::<u32>() as u32);
    let (to, size) = (&raw mut bytes, &raw mut length);
    // SAFETY: the kernel writes `length` bytes into `bytes`, and the length.
    unsafe {
        call!(libc::SYS_getsockopt, fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, to, size)?
    };
    Ok(bytes)
}

/// Lets at most so many bytes be on their way to it. tcp(7), `TCP_WINDOW_CLAMP`
///
/// # Errors
/// `EOPNOTSUPP`: it is not TCP.
pub fn set_window(fd: i32, bytes: u32) -> Result<(), Errno> {
    let (from, length) = (&raw const bytes, size_of::<u32>() as u32);
    let option = libc::TCP_WINDOW_CLAMP;
    // SAFETY: the kernel reads `length` bytes, those of `bytes`.
    unsafe { call!(libc::SYS_setsockopt, fd, libc::IPPROTO_TCP, option, from, length)? };
    Ok(())
}
