//! A process that lets a job go on if the parent that looks at its conditions is killed while the job stands.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use discnice_ledger::policy::Conditions;
use discnice_processes::fork;
use discnice_processes::tree::{Process, Tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use crate::classes::Found;
use crate::paused::Chosen;

/// So many processes of a job are told at most.
const TOLD: usize = 4096;
/// Bytes of one of them in a message: its PID, and when it started.
const PROCESS: usize = 12;

/// A guardian of a job, as its parent has it.
#[derive(Debug)]
pub struct Guardian {
    socket: UnixDatagram,
    told: Vec<Process>,
}

impl Guardian {
    /// Starts a guardian of these parts of a class. It ends with this process, however that ends: one that still says then
    /// what the job waits for was killed.
    ///
    /// # Errors
    /// Descriptors or processes are short.
    pub fn start(found: Found, parts: Vec<Chosen>) -> io::Result<Self> {
        let parent = Process::find(getpid().as_raw_nonzero().get().unsigned_abs());
        let parent = parent.ok_or(io::ErrorKind::Unsupported)?;
        let (socket, its) = UnixDatagram::pair()?;
        socket.set_nonblocking(true)?;
        its.set_nonblocking(true)?;
        fork::detached(its.into(), move |its| {
            guard(parent, &OwnedFd::from(its).into(), found, &parts);
        })?;
        Ok(Self { socket, told: Vec::new() })
    }

    /// Tells it which processes the job has: its first ones may be killed together with this process.
    pub fn tell(&mut self, family: &Tree) {
        let mut all: Vec<Process> = family.iter().map(Process::of).take(TOLD).collect();
        all.sort_unstable_by_key(|process| process.id());
        if all == self.told {
            return;
        }
        let message: Vec<u8> = all.iter().copied().flat_map(encoded).collect();
        // One that does not listen now is told at the next look.
        if self.socket.send(&message).is_ok() {
            self.told = all;
        }
    }
}

/// Makes this process, which was started for that, a guardian: what ends its parent from a terminal does not end it.
pub(super) fn become_one() {
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
    let _ = rustix::thread::set_name(c"discnice-guard");
}

fn encoded(process: Process) -> [u8; PROCESS] {
    let mut bytes = [0; PROCESS];
    bytes[..4].copy_from_slice(&process.id().to_ne_bytes());
    bytes[4..].copy_from_slice(&process.started.to_ne_bytes());
    bytes
}

fn decoded(bytes: &[u8]) -> Option<Process> {
    let (id, started) = bytes.split_first_chunk()?;
    let pid = Pid::from_raw(i32::from_ne_bytes(*id))?;
    Some(Process { pid, started: u64::from_ne_bytes(started.try_into().ok()?) })
}

/// Takes all messages that have come; the last one is right.
fn hear(socket: &UnixDatagram, family: &mut Vec<Process>) {
    let mut message = vec![0; TOLD * PROCESS];
    while let Ok(length) = socket.recv(&mut message) {
        *family = message[..length].chunks_exact(PROCESS).filter_map(decoded).collect();
    }
}

/// The guardian's whole life.
fn guard(parent: Process, socket: &UnixDatagram, found: Found, parts: &[Chosen]) {
    become_one();
    let mut family = Vec::new();
    // There is no descriptor of a parent that has ended already.
    let lives =
        pidfd_open(parent.pid, PidfdFlags::empty()).ok().filter(|_| parent.stat().is_some());
    if let Some(lives) = lives {
        loop {
            let ended = PollFd::new(&lives, PollFlags::IN);
            let mut fds = [ended, PollFd::new(socket, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            if !fds[0].revents().is_empty() {
                break;
            }
            hear(socket, &mut family);
        }
    }
    hear(socket, &mut family);
    // What stands for another reason, the user wants to stand.
    if found.class.unmet().is_empty() {
        return;
    }
    let left = Tree::new(&family).first();
    let left = left.into_iter().map(|process| Chosen::part(found, process));
    let standing: Vec<Chosen> =
        parts.iter().copied().chain(left).filter(|part| part.is_paused()).collect();
    if !standing.is_empty() {
        standing.into_iter().for_each(Chosen::go_on);
        found.class.set_unmet(Conditions::NONE);
    }
}
