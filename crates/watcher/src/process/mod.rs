//! Tells which processes may be held, and keeps hold of a process's identity.

mod call;
pub(crate) mod descriptors;
pub(crate) mod local_files;
pub(crate) mod mountinfo;
mod status;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use discnice_processes::tree::{self, Process};
use discnice_sys::procfs::{self, Stat};
use discnice_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_linger;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, geteuid, getpid, pidfd_getfd, pidfd_open,
    pidfd_send_signal, test_kill_process,
};
use rustix::time::{ClockId, clock_gettime};

pub use call::{Call, call};
use status::Status;
pub use status::{
    WORKER, is_colleague, is_doomed, is_hidden, is_in_foreground, is_signalled, is_this_program,
    leader, link, lives, maps, name, number_inside, real_user, threads, tracer, voluntary_switches,
};
pub(crate) use status::{command_line, has_thread_in, read_file, waiting_threads};

/// A process that stays the same one: its descriptor cannot come to mean another.
#[derive(Debug)]
pub struct Pinned {
    /// Number and start time.
    pub process: Process,
    descriptor: OwnedFd,
}

impl Pinned {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As pidfd_send_signal(2).
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.descriptor, signal)?)
    }

    /// One of its descriptors as one of ours, to advise on and to close at once. `None` where the system
    /// forbids that, for what [`local_files`] leaves alone, to close which may wait for ever, and for connections that linger:
    /// if the process closes one meanwhile, it is the last to be closed that waits until all has been sent.
    #[must_use]
    pub fn borrow(&self, descriptor: i32) -> Option<OwnedFd> {
        let link = PathBuf::from(format!("/proc/{}/fd/{descriptor}", self.id()));
        let is_socket = descriptors::socket(&link).is_some();
        if !is_socket && !local_files::is_local(&link) {
            return None;
        }
        let borrowed = pidfd_getfd(&self.descriptor, descriptor, PidfdGetfdFlags::empty()).ok()?;
        let lingers =
            is_socket && matches!(socket_linger(&borrowed), Ok(Some(time)) if !time.is_zero());
        (!lingers).then_some(borrowed)
    }

    /// The time since it started.
    #[must_use]
    pub fn age(&self) -> Nanos {
        let ticks = u64::from(procfs::TICKS);
        let tick = Nanos::SECOND.0 / ticks;
        let boot = clock_gettime(ClockId::Boottime);
        let now = boot.tv_sec.cast_unsigned() * ticks + boot.tv_nsec.cast_unsigned() / tick;
        Nanos(now.saturating_sub(self.process.started).saturating_mul(tick))
    }

    /// Whether it has ended, perhaps without its parent having noticed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
    }
}

/// Why a process cannot be regulated from outside. What it says is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Zero or negative.
    NotAnId(i32),
    /// There is none of this number, or no longer.
    NoProcess(i32),
    /// The number of a thread.
    Thread(i32),
    /// The first process of the system or container.
    First,
    /// A part of the kernel.
    Kernel(i32),
    /// This very program.
    Ourselves(i32),
    /// Another user's.
    Foreign(i32),
    /// Traced by this process.
    Traced(i32, i32),
    /// No descriptors are left.
    Exhausted,
    /// Its account may not be read.
    Hidden(i32),
    /// It executes a program, and cannot be looked at before it has closed its files.
    Executing(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnId(id) => write!(f, "{id} is not a PID; give the PID of a running process"),
            Self::NoProcess(id) => write!(f, "no process {id}; give a running one's PID"),
            Self::Thread(id) => write!(f, "{id} is a thread; give its process's PID"),
            Self::First => f.write_str("process 1 keeps the system running and is not held"),
            Self::Kernel(id) => write!(f, "process {id} is a part of the kernel"),
            Self::Ourselves(id) => write!(f, "process {id} is this command itself"),
            Self::Foreign(id) => {
                write!(f, "process {id} may not be held by this user; it is another user's")
            }
            Self::Traced(id, tracer) => write!(
                f,
                "process {id} is being traced by process {tracer} (a debugger?); end that first"
            ),
            Self::Exhausted => f.write_str("no file descriptors are left; see `ulimit -n`"),
            Self::Hidden(id) => write!(
                f,
                "process {id} hides its I/O from its user (prctl(2), PR_SET_DUMPABLE); it cannot be held"
            ),
            Self::Executing(id) => write!(
                f,
                "process {id} begins a program, and still closes files on a file system that does not answer; try again later"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Takes hold of the identity of process `id`. Waits a moment for one that just begins a program.
///
/// # Errors
/// There is no such process, it cannot be looked at, or the system has no descriptor for it.
pub fn pin(id: i32) -> Result<Pinned, Refusal> {
    tree::can_be_looked_at(id.unsigned_abs());
    pin_now(id)
}

/// Takes hold of the identity of process `id` if it can be looked at now.
///
/// # Errors
/// As [`pin`].
pub fn pin_now(id: i32) -> Result<Pinned, Refusal> {
    if id < 1 {
        return Err(Refusal::NotAnId(id));
    }
    let pid = Pid::from_raw(id).ok_or(Refusal::NotAnId(id))?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
        Errno::MFILE | Errno::NFILE => Refusal::Exhausted,
        // ENOENT since Linux 6.9, EINVAL before.
        Errno::INVAL | Errno::NOENT => Refusal::Thread(id),
        _ => Refusal::NoProcess(id),
    })?;
    // Read after the descriptor was opened: what is read is the process that it means, or its
    // successor; the descriptor would then say that its own process has ended.
    let Some(process) = Process::find_now(id.unsigned_abs()) else {
        return Err(match id.unsigned_abs() {
            _ if is_exhausted() => Refusal::Exhausted,
            id_of_one if procfs::is_executing(id_of_one) => Refusal::Executing(id),
            _ => Refusal::NoProcess(id),
        });
    };
    let pinned = Pinned { process, descriptor };
    if pinned.has_ended() { Err(Refusal::NoProcess(id)) } else { Ok(pinned) }
}

/// Takes hold of the identity of process `id`, which a class lists, if it can be looked at now, or has ended and its account
/// can still be read: Linux 6.18 shows that of a process that is not waited for yet to the superuser only.
///
/// # Errors
/// As [`pin`].
pub fn pin_listed(id: i32) -> Result<Pinned, Refusal> {
    pin_now(id).or_else(|refusal| pin_ended(id).ok_or(refusal))
}

/// Takes hold of the identity of process `id` if it has ended, is not waited for yet, and shows its account.
fn pin_ended(id: i32) -> Option<Pinned> {
    let descriptor = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
    // What the descriptor means has ended too: it is this process, or an earlier one of its number.
    let stat = procfs::stat(id.cast_unsigned()).filter(Stat::has_ended)?;
    procfs::io(stat.id)?;
    Some(Pinned { process: Process::of(&stat), descriptor })
}

/// Whether /proc cannot be read now for want of a descriptor.
fn is_exhausted() -> bool {
    let error =
        fs::File::open("/proc/self/stat").err().and_then(|error| Errno::from_io_error(&error));
    matches!(error, Some(Errno::MFILE | Errno::NFILE))
}

/// Whether the process may be regulated at the user's wish.
///
/// # Errors
/// Why not.
pub fn examine(pinned: &Pinned) -> Result<(), Refusal> {
    let pid = pinned.process.pid;
    let id = pid.as_raw_nonzero().get();
    if pid == getpid() {
        return Err(Refusal::Ourselves(id));
    }
    if pid.is_init() {
        return Err(Refusal::First);
    }
    let status = Status::read(id).ok_or(Refusal::NoProcess(id))?;
    if status.number("Kthread") == Some(1)
        || link(pinned.id(), "exe").is_err_and(|error| is_missing(&error))
    {
        return Err(Refusal::Kernel(id));
    }
    let foreign =
        !geteuid().is_root() && status.number("Uid") != Some(geteuid().as_raw().cast_signed());
    if foreign || test_kill_process(pid) == Err(Errno::PERM) {
        return Err(Refusal::Foreign(id));
    }
    match tracer(id) {
        Some(tracer) => Err(Refusal::Traced(id, tracer)),
        None if is_hidden(pinned.id()) => Err(Refusal::Hidden(id)),
        None => Ok(()),
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests;
