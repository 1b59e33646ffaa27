//! What the kernel tells of connections without their descriptors, sock_diag(7): for systems in which those cannot be
//! borrowed. It knows the network namespace of this process only.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

use discnice_sys::deadline;
use discnice_sys::socket::Machine;
use discnice_sys::tcp::{Info, OPEN};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, linux/sock_diag.h; `NLMSG_ERROR` and `NLMSG_DONE`, linux/netlink.h.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST`, and with that `NLM_F_DUMP`.
const REQUEST: u16 = 1;
const DUMP: u16 = REQUEST | 0x300;
/// `INET_DIAG_INFO`, linux/inet_diag.h, and its bit among what is asked for.
const INFO: u16 = 2;
const WITH_INFO: u8 = 1 << (INFO - 1);
const TCP: u8 = 6;
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// Lengths of `struct nlmsghdr`, `struct inet_diag_sockid` and `struct inet_diag_msg`.
const HEAD: usize = 16;
const ID: usize = 48;
const MESSAGE: usize = 4 + ID + 20;
/// As much as the kernel gives at once.
const BUFFER: usize = 32 << 10;

/// How the kernel names a connection: `struct inet_diag_sockid`, both addresses and the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    family: u8,
    id: [u8; ID],
}

impl Name {
    /// The number that tells a socket from all others since the machine was started.
    pub(super) fn cookie(&self) -> u64 {
        self.id.last_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// The machine at the other end; `None` if that is this one.
    pub(super) fn peer(&self) -> Option<[u8; 16]> {
        let [own, peer] = [4, 20].map(|at| self.machine(at));
        match peer {
            Machine::Host(host) if !peer.is_loopback() && own != peer => Some(host),
            _ => None,
        }
    }

    /// The machine at an address in the name: made a socket address first.
    fn machine(&self, at: usize) -> Machine {
        let address = self.id.get(at..at + 16).unwrap_or_default();
        let family = u16::from(self.family).to_ne_bytes();
        let before: &[u8] = if self.family == FAMILIES[0] { &[0; 2] } else { &[0; 6] };
        Machine::of(&[&family, before, address].concat())
    }
}

/// A connection that the kernel told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    inode: u64,
    pub(super) name: Name,
    pub(super) info: Info,
}

impl Told {
    /// Reads the payload of one message.
    fn parse(message: &[u8]) -> Option<Self> {
        let (fixed, mut rest) = message.split_at_checked(MESSAGE)?;
        let name = Name { family: *fixed.first()?, id: *fixed.get(4..)?.first_chunk()? };
        let inode = u32::from_ne_bytes(*fixed.last_chunk()?).into();
        while let Some((head, _)) = rest.split_first_chunk::<4>() {
            let [length, kind] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_ne_bytes);
            let value = rest.get(4..length.into())?;
            if kind == INFO {
                return Some(Self { inode, name, info: Info::parse(value)? });
            }
            rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
        }
        None
    }
}

/// A socket on which the kernel is asked.
#[derive(Debug)]
pub(super) struct Diag {
    socket: OwnedFd,
    /// Number of the last request: answers to earlier ones are dropped.
    sequence: u32,
    buffer: Vec<u8>,
}

impl Diag {
    /// Opens one, if the kernel tells of connections at all.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
        let mut new = Self { socket, sequence: 0, buffer: vec![0; BUFFER] };
        let nothing = Name { family: FAMILIES[0], id: [0; ID] };
        // No connection is in none of the states.
        new.request(&nothing, DUMP, 0, |_| ())?;
        Ok(new)
    }

    /// All connections of this network namespace, by the inode of the socket.
    pub(super) fn all(&mut self) -> HashMap<u64, Told> {
        let mut all = HashMap::new();
        for family in FAMILIES {
            let any = Name { family, id: [0; ID] };
            let _ = self.request(&any, DUMP, OPEN, |told| {
                all.insert(told.inode, told);
            });
        }
        all
    }

    /// What one connection does; `None` if it has ended.
    pub(super) fn ask(&mut self, name: &Name) -> Option<Info> {
        let mut info = None;
        self.request(name, REQUEST, OPEN, |told| info = Some(told.info)).ok()?;
        info
    }

    /// Asks, and takes each connection that the kernel tells of.
    fn request(
        &mut self,
        name: &Name,
        flags: u16,
        states: u32,
        mut take: impl FnMut(Told),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let Self { socket, sequence: ours, buffer } = self;
        send(&*socket, &message(*ours, name, flags, states), SendFlags::empty())?;
        loop {
            // As much of a machine with many connections as it gives at once.
            deadline::renew();
            let (length, _) = recv(&*socket, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = buffer.get(..length).unwrap_or_default();
            while let Some((head, payload, after)) = split(rest) {
                rest = after;
                match head {
                    Head { sequence, .. } if sequence != *ours => {}
                    Head { kind: DONE, .. } => return Ok(()),
                    Head { kind: ERROR, .. } => return refused(payload),
                    _ => {
                        Told::parse(payload).into_iter().for_each(&mut take);
                        if flags == REQUEST {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

/// A request: `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn message(sequence: u32, name: &Name, flags: u16, states: u32) -> Vec<u8> {
    let length = (HEAD + 8 + ID) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([BY_FAMILY.to_ne_bytes(), flags.to_ne_bytes()].concat());
    bytes.extend([sequence.to_ne_bytes(), [0; 4]].concat());
    bytes.extend([name.family, TCP, WITH_INFO, 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.extend(name.id);
    bytes
}

/// What matters of a `struct nlmsghdr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    kind: u16,
    sequence: u32,
}

/// The first message: its head and its payload; and what follows it.
fn split(bytes: &[u8]) -> Option<(Head, &[u8], &[u8])> {
    let (head, _) = bytes.split_first_chunk::<HEAD>()?;
    let word = |at: usize| head.get(at..at + 4).and_then(|word| word.first_chunk().copied());
    let length = u32::from_ne_bytes(word(0)?) as usize;
    let kind = u16::from_ne_bytes([head[4], head[5]]);
    let payload = bytes.get(HEAD..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((Head { kind, sequence: u32::from_ne_bytes(word(8)?) }, payload, after))
}

/// The error that a payload tells of; zero is none.
fn refused(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk().map_or(-libc::EIO, |code| i32::from_ne_bytes(*code)) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use discnice_requirements::skip;

    use super::*;

    fn connection(address: SocketAddr) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((ours, listener.accept().unwrap().0))
    }

    #[test]
    fn what_a_connection_has_moved_is_told_without_its_descriptor() {
        let Ok(mut diag) = Diag::open() else { skip!("the kernel does not tell of sockets") };
        for address in
            [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))]
        {
            let Some((mut ours, mut theirs)) = connection(address) else { continue };
            let inode = rustix::fs::fstat(ours.as_fd()).unwrap().st_ino;
            let before = diag.all()[&inode];
            assert_eq!((before.name.peer(), before.info.is_open), (None, true));
            ours.write_all(&[1; 5000]).unwrap();
            theirs.read_exact(&mut [0; 5000]).unwrap();
            theirs.write_all(&[1; 300]).unwrap();
            ours.read_exact(&mut [0; 300]).unwrap();
            let now = diag.ask(&before.name).expect("it is there");
            assert_eq!(now.received - before.info.received, 300);
            assert!(now.sent - before.info.sent >= 5000);
            drop((ours, theirs));
            assert_eq!(diag.ask(&before.name), None);
            assert!(!diag.all().contains_key(&inode));
        }
    }

    #[test]
    fn a_peer_elsewhere_is_known_by_its_address() {
        let mut id = [0; ID];
        id[4..8].copy_from_slice(&[192, 0, 2, 1]);
        id[20..24].copy_from_slice(&[192, 0, 2, 7]);
        let name = Name { family: FAMILIES[0], id };
        assert_eq!(name.peer().map(|host| [host[12], host[15]]), Some([192, 7]));
        id[20..24].copy_from_slice(&[192, 0, 2, 1]);
        assert_eq!(Name { family: FAMILIES[0], id }.peer(), None);
    }

    #[test]
    fn broken_answers_are_dropped() {
        assert!(Told::parse(&[0; MESSAGE - 1]).is_none() && Told::parse(&[0; MESSAGE]).is_none());
        // An attribute that is shorter than its own head, and one that ends after the message.
        for length in [0u8, 3, 200] {
            let mut message = vec![0; MESSAGE];
            message.extend([length, 0, 2, 0, 1, 2, 3, 4]);
            assert!(Told::parse(&message).is_none(), "{length}");
        }
        assert!(split(&[0; HEAD]).is_none() && split(&[255; HEAD]).is_none());
    }
}
