//! A process that lets a job go on if the parent that looks at its conditions is killed while the job stands.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use discnice_ledger::policy::Conditions;
use discnice_processes::fork;
use discnice_processes::tree::{PROCESS, Process, Tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::classes::MappedClass;
use crate::paused::Chosen;

/// So many processes of a job are told at most.
const TOLD: usize = 4096;

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
    pub fn start(found: MappedClass, parts: Vec<Chosen>) -> io::Result<Self> {
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
    pub fn tell(&mut self, job: &Tree) {
        let mut all: Vec<Process> = job.iter().map(Process::of).take(TOLD).collect();
        all.sort_unstable_by_key(|process| process.id());
        if all == self.told {
            return;
        }
        let message: Vec<u8> = all.iter().copied().flat_map(Process::to_bytes).collect();
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

/// Takes all messages that have come; the last one is right.
fn hear(socket: &UnixDatagram, processes: &mut Vec<Process>) {
    let mut message = vec![0; TOLD * PROCESS];
    while let Ok(length) = socket.recv(&mut message) {
        let (all, _) = message[..length].as_chunks::<PROCESS>();
        *processes = all.iter().copied().filter_map(Process::from_bytes).collect();
    }
}

/// The guardian's whole life.
fn guard(parent: Process, socket: &UnixDatagram, found: MappedClass, parts: &[Chosen]) {
    become_one();
    let mut processes = Vec::new();
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
            hear(socket, &mut processes);
        }
    }
    hear(socket, &mut processes);
    // What stands for another reason, the user wants to stand.
    if found.class.unmet().is_empty() {
        return;
    }
    let left = Tree::new(&processes).first();
    let left = left.into_iter().map(|process| Chosen::part(found, process));
    let standing: Vec<Chosen> =
        parts.iter().copied().chain(left).filter(|part| part.is_paused()).collect();
    if !standing.is_empty() {
        standing.into_iter().for_each(Chosen::go_on);
        found.class.set_unmet(Conditions::NONE);
    }
}
