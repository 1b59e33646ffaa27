//! Which machine is at the other end of a connection.

use core::mem::MaybeUninit;

use crate::raw::{Errno, call};

/// An address as the kernel gives it: `struct sockaddr_in6` is the longest that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Address {
    bytes: [u8; 28],
}

/// Machine that an address means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// An IPv6 address, or an IPv4 address as IPv6 writes it (`::ffff:a.b.c.d`).
    Host([u8; 16]),
    /// Not an internet address, or none.
    Unknown,
}

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Machine {
    /// Reads the machine from the first bytes of a `struct sockaddr`.
    #[must_use]
    pub fn of(address: &[u8]) -> Self {
        let Some((family, rest)) = address.split_first_chunk::<2>() else { return Self::Unknown };
        match i32::from(u16::from_ne_bytes(*family)) {
            libc::AF_INET => rest.get(2..6).map_or(Self::Unknown, |address| {
                let mut host = [0; 16];
                let (prefix, last) = host.split_at_mut(MAPPED.len());
                prefix.copy_from_slice(&MAPPED);
                last.copy_from_slice(address);
                Self::Host(host)
            }),
            libc::AF_INET6 => rest
                .get(6..)
                .and_then(|rest| rest.first_chunk())
                .map_or(Self::Unknown, |host| Self::Host(*host)),
            _ => Self::Unknown,
        }
    }

    /// Returns true for an address in 127.0.0.0/8 or ::1. RFC 1122, 3.2.1.3; RFC 4291, 2.5.3.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Host(host) => match host.strip_prefix(&MAPPED) {
                Some(address) => address.first() == Some(&127),
                None => host
                    .split_last()
                    .is_some_and(|(last, rest)| *last == 1 && rest.iter().all(|byte| *byte == 0)),
            },
            Self::Unknown => false,
        }
    }
}

/// Returns true if what a connected socket sends stays within the machine: its peer is a loopback
/// address or its own, to which Linux also delivers through the loopback device. getpeername(2),
/// getsockname(2).
///
/// # Errors
/// `ENOTCONN`.
pub fn is_local(fd: i32) -> Result<bool, Errno> {
    let peer = name::<{ libc::SYS_getpeername }>(fd)?;
    Ok(peer.is_loopback() || name::<{ libc::SYS_getsockname }>(fd)? == peer)
}

/// Machine at the other end of a connection. getpeername(2)
///
/// # Errors
/// `ENOTCONN`.
pub fn peer(fd: i32) -> Result<Machine, Errno> {
    name::<{ libc::SYS_getpeername }>(fd)
}

fn name<const CALL: core::ffi::c_long>(fd: i32) -> Result<Machine, Errno> {
    let mut address = MaybeUninit::<Address>::zeroed();
    let mut length = size_of::<Address>() as u32;
    // SAFETY: the kernel writes at most `length` bytes of address, and the length.
    unsafe { call!(CALL, fd, address.as_mut_ptr(), &raw mut length)? };
    // SAFETY: zero bytes, some of which the kernel replaced.
    Ok(Machine::of(&unsafe { address.assume_init() }.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(address: [u8; 4]) -> Machine {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[4..8].copy_from_slice(&address);
        Machine::of(&bytes)
    }

    fn v6(address: [u8; 16]) -> Machine {
        let mut bytes = [0; 28];
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[8..24].copy_from_slice(&address);
        Machine::of(&bytes)
    }

    #[test]
    fn loopback_in_all_its_forms() {
        let mapped = |last: [u8; 4]| {
            let mut address = [0; 16];
            address[..12].copy_from_slice(&MAPPED);
            address[12..].copy_from_slice(&last);
            address
        };
        let mut one = [0; 16];
        one[15] = 1;
        for local in [v4([127, 0, 0, 1]), v4([127, 9, 8, 7]), v6(one), v6(mapped([127, 0, 0, 1]))] {
            assert!(local.is_loopback(), "{local:?}");
        }
        let mut two = one;
        two[0] = 0x20;
        for far in [v4([10, 0, 0, 1]), v6(two), v6([0; 16]), v6(mapped([10, 0, 0, 127]))] {
            assert!(!far.is_loopback(), "{far:?}");
        }
        assert_eq!(v4([10, 0, 0, 1]), v6(mapped([10, 0, 0, 1])));
    }

    #[test]
    fn what_is_no_internet_address_is_unknown() {
        for bytes in [&[][..], &[1], &[1, 0, 0, 0], &(libc::AF_INET as u16).to_ne_bytes()] {
            assert_eq!(Machine::of(bytes), Machine::Unknown);
        }
    }
}
