//! Parents of processes, as the kernel reports them: its process events, of which forks are asked
//! for (netlink(7), `NETLINK_CONNECTOR`; the kernel's Documentation/driver-api/connector.rst and
//! include/uapi/linux/cn_proc.h).
//!
//! A daemon's parent may have ended before any look, so that neither its own parent nor its session
//! tells its ancestry. Ordinary users get these events since Linux 6.6, and outside of containers
//! only. Elsewhere children are known by what they carry in their environment.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use discnice_units::Moment;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, send,
    socket_with, sockopt,
};

use crate::tuning;

/// `CN_IDX_PROC` and `CN_VAL_PROC`, linux/connector.h.
const PROCESSES: (u32, u32) = (1, 1);
/// `PROC_CN_MCAST_LISTEN`; `PROC_EVENT_NONE`, which answers that; `PROC_EVENT_FORK`, `PROC_EVENT_EXEC`.
const LISTEN: u32 = 1;
const ANSWER: u32 = 0;
const BIRTH: u32 = 1;
const EXECUTION: u32 = 2;

/// Where in a message things are: behind `struct nlmsghdr` (16 bytes) and `struct cn_msg` (20 bytes) the event, and
/// behind its own head of 16 bytes four numbers.
const KIND: usize = 16 + 20;
const TIME: usize = KIND + 8;
const NUMBERS: usize = KIND + 16;

/// An ancestor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor {
    /// Its process id.
    pub id: u32,
    /// When it was born itself; zero if that was before births were told.
    pub born: Moment,
}

/// Of each process that was born lately, its parent and when it was born.
#[derive(Debug, Default)]
struct Parents {
    young: HashMap<u32, Ancestor>,
    /// Those that were young before as many others were born.
    old: HashMap<u32, Ancestor>,
}

impl Parents {
    fn insert(&mut self, child: u32, parent: Ancestor) {
        if self.young.len() >= tuning::discovery::FORKS_KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(child, parent);
    }

    fn get(&self, child: u32) -> Option<&Ancestor> {
        self.young.get(&child).or_else(|| self.old.get(&child))
    }
}

/// Forks of the last while.
#[derive(Debug, Default)]
pub struct ForkEvents {
    socket: Option<OwnedFd>,
    parents: Parents,
    /// Those that were born since last asked, and those that executed a program.
    born: Vec<u32>,
    executed: Vec<u32>,
    /// Set if some were not told of.
    has_lost: bool,
}

impl ForkEvents {
    /// Has the kernel tell of births from now on, if it does.
    #[must_use]
    pub fn begin() -> Self {
        Self { socket: listen().ok(), ..Self::default() }
    }

    /// Can be read when something was told.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// The processes that were born since the last call.
    pub fn take_born(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.born)
    }

    /// The processes that executed a program since the last call, as far as they were remembered.
    pub fn take_executed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.executed)
    }

    /// Whether the kernel had more to tell than it keeps, since the last call.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Whether it tells.
    #[must_use]
    pub fn are_told(&self) -> bool {
        self.socket.is_some()
    }

    /// Takes what was told since the last call; returns true if anything was.
    pub fn follow(&mut self) -> bool {
        let Some(socket) = self.socket.take() else { return false };
        let (mut message, mut any) = ([0; 256], false);
        loop {
            match recvfrom(&socket, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((length, _, from)) => {
                    any = true;
                    if is_kernel(from) {
                        self.note(message.get(..length).unwrap_or_default());
                    }
                }
                Err(Errno::INTR) => {}
                // Some events were lost: a process forked meanwhile could be taken for the child of
                // another.
                Err(Errno::NOBUFS) => {
                    (any, self.has_lost) = (true, true);
                    self.parents = Parents::default();
                }
                Err(_) => break,
            }
        }
        self.socket = Some(socket);
        any
    }

    fn note(&mut self, message: &[u8]) {
        if kind(message) == Some(EXECUTION) && self.executed.len() < tuning::discovery::EXECUTED {
            self.executed.extend(number(message, NUMBERS + 4));
        }
        let Some(Birth { parent, child, at }) = Birth::parse(message) else { return };
        self.parents.insert(child, Ancestor { id: parent, born: at });
        self.born.push(child);
    }

    /// Returns the parent of process `id`, that one's parent, and so on, as far as known.
    #[must_use]
    pub fn ancestors(&self, id: u32) -> Vec<Ancestor> {
        let parent = |id: &u32| self.parents.get(*id).map(|birth| birth.id);
        let line = std::iter::successors(parent(&id), parent).take(tuning::discovery::GENERATIONS);
        line.map(|id| Ancestor {
            id,
            born: self.parents.get(id).map_or(Moment::FIRST, |own| own.born),
        })
        .collect()
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Birth {
    parent: u32,
    child: u32,
    at: Moment,
}

impl Birth {
    /// The birth of a process; new threads are told of, too.
    fn parse(message: &[u8]) -> Option<Self> {
        let [_, parent, thread, child] =
            [0, 1, 2, 3].map(|index| number(message, NUMBERS + 4 * index));
        let born = kind(message)? == BIRTH && thread? == child?;
        let at = u64::from(number(message, TIME)?) | u64::from(number(message, TIME + 4)?) << 32;
        born.then_some(Self { parent: parent?, child: child?, at: Moment(at) })
    }
}

/// What kind of event a message tells of, if of any.
fn kind(message: &[u8]) -> Option<u32> {
    let ours = (number(message, 16)?, number(message, 20)?) == PROCESSES;
    number(message, KIND).filter(|_| ours)
}

fn number(message: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?))
}

fn is_kernel(from: Option<rustix::net::SocketAddrAny>) -> bool {
    from.and_then(|from| SocketAddrNetlink::try_from(from).ok()).is_some_and(|from| from.pid() == 0)
}

/// A socket on which births are told.
fn listen() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::NETLINK;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(netlink::CONNECTOR))?;
    let _ = sockopt::set_socket_recv_buffer_size(&socket, tuning::discovery::FORK_QUEUE);
    bind(&socket, &SocketAddrNetlink::new(0, PROCESSES.0))?;
    send(&socket, &request(&[LISTEN]), SendFlags::empty())?;
    // A process that gets no events gets no answer either.
    let mut answer = [0; 256];
    let answered = (0..tuning::discovery::GENERATIONS).any(|_| {
        let length = recvfrom(&socket, &mut answer[..], RecvFlags::DONTWAIT).map_or(0, |got| got.0);
        kind(answer.get(..length).unwrap_or_default()) == Some(ANSWER)
    });
    if !answered {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // Of these alone, where the kernel can choose (Linux 6.6).
    send(&socket, &request(&[LISTEN, BIRTH | EXECUTION]), SendFlags::empty())?;
    Ok(socket)
}

/// A message to the kernel: heads, and these words.
fn request(words: &[u32]) -> Vec<u8> {
    const DONE: u32 = 3;
    let length = 4 * words.len() as u32;
    // The length, and two halves: the kind and no flags; then nothing that matters.
    let head = [16 + 20 + length, DONE, 0, 0];
    let own = [PROCESSES.0, PROCESSES.1, 0, 0, length];
    let all = head.iter().chain(&own).chain(words);
    all.flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests;
