//! Tells which processes may be held, and keeps hold of a process's identity.

pub(crate) mod descriptors;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use discnice_processes::tree::Process;
use discnice_sys::procfs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, geteuid, getpid, pidfd_getfd, pidfd_open,
    pidfd_send_signal, test_kill_process,
};

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
    /// forbids that.
    #[must_use]
    pub fn borrow(&self, descriptor: i32) -> Option<OwnedFd> {
        pidfd_getfd(&self.descriptor, descriptor, PidfdGetfdFlags::empty()).ok()
    }

    /// Whether it has ended, perhaps without its parent having noticed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
    }
}

/// Flags of a thread that the kernel made for a program's io_uring (`PF_IO_WORKER`,
/// `PF_USER_WORKER`, include/linux/sched.h): it cannot be traced, and it stops for want of work
/// when the program's own threads do.
pub const WORKER: u64 = 0x10 | 0x4000;

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
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnId(id) => write!(f, "{id} is no PID; give the PID of a running process"),
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
        }
    }
}

impl std::error::Error for Refusal {}

/// Takes hold of the identity of process `id`.
///
/// # Errors
/// There is no such process, or the system has no descriptor for it.
pub fn pin(id: i32) -> Result<Pinned, Refusal> {
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
    let Some(process) = Process::find(id.unsigned_abs()) else {
        return Err(if is_exhausted() { Refusal::Exhausted } else { Refusal::NoProcess(id) });
    };
    let pinned = Pinned { process, descriptor };
    if pinned.has_ended() { Err(Refusal::NoProcess(id)) } else { Ok(pinned) }
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
        || fs::read_link(format!("/proc/{id}/exe")).is_err_and(|error| is_missing(&error))
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

/// Whether the account of a process may not be read by us. ptrace(2), access mode checking
#[must_use]
pub fn is_hidden(id: u32) -> bool {
    fs::read(format!("/proc/{id}/io"))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Returns true if the process runs; one that has ended may exist for long, if it is not reaped.
#[must_use]
pub fn lives(id: u32) -> bool {
    procfs::stat(id).is_some_and(|stat| !stat.has_ended())
}

/// Returns the tracer of the process.
#[must_use]
pub fn tracer(id: i32) -> Option<i32> {
    Status::read(id)?.number("TracerPid").filter(|tracer| *tracer != 0)
}

/// The process that a thread belongs to.
#[must_use]
pub fn leader(thread: i32) -> Option<i32> {
    Status::read(thread)?.number("Tgid")
}

/// The user that started a process: its real one, which a set-user-ID program does not change.
#[must_use]
pub fn real_user(id: i32) -> Option<u32> {
    Status::read(id)?.number("Uid").map(i32::cast_unsigned)
}

/// Whether a process executes the program that this one does.
#[must_use]
pub fn is_this_program(id: u32) -> bool {
    let program = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
    let own = program("self");
    own.is_some() && program(&id.to_string()) == own
}

/// How often a thread has given up the processor.
#[must_use]
pub fn voluntary_switches(thread: u32) -> Option<u64> {
    let switches = Status::read(thread.cast_signed())?.number("voluntary_ctxt_switches")?;
    u64::try_from(switches).ok()
}

/// Reads a file of /proc, of at most `most` bytes, with one read(2) if it has fewer than `room`: it tells no size, so that
/// [`fs::read`] begins with 32 bytes.
pub(crate) fn read_file(id: u32, name: &str, room: usize, most: u64) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(room);
    let file = File::open(format!("/proc/{id}/{name}")).ok()?;
    file.take(most).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Usual size of `/proc/PID/status`, in bytes.
const LENGTH: usize = 4096;

/// `/proc/PID/status` (proc(5)).
struct Status(String);

impl Status {
    fn read(id: i32) -> Option<Self> {
        let text = read_file(u32::try_from(id).ok()?, "status", LENGTH, u64::MAX)?;
        String::from_utf8(text).ok().map(Self)
    }

    /// The first number of a line.
    fn number(&self, label: &str) -> Option<i32> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

/// The number by which the innermost PID namespace of the process knows it.
#[must_use]
pub fn number_inside(id: u32) -> Option<u32> {
    let status = Status::read(id.cast_signed())?;
    let numbers = status.0.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Whether a signal waits to be received by the process or one of its threads.
#[must_use]
pub fn is_signalled(id: u32) -> bool {
    threads(id).any(|thread| procfs::pending_signals(thread) != 0)
}

/// The process's name as the kernel has it (`/proc/PID/comm`); empty if it has ended.
#[must_use]
pub fn name(id: u32) -> Vec<u8> {
    let mut name = fs::read(format!("/proc/{id}/comm")).unwrap_or_default();
    name.truncate(name.trim_ascii_end().len());
    name
}

/// Whether a signal waits that ends the process.
#[must_use]
pub fn is_doomed(id: u32) -> bool {
    threads(id).any(|thread| procfs::fatal_signals(thread) != 0)
}

/// The ids of the process's threads.
pub fn threads(id: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a thread of the process, other than a worker of the kernel, is in one of these states.
pub(crate) fn has_thread_in(id: u32, states: &[u8]) -> bool {
    threads(id)
        .filter_map(procfs::stat)
        .any(|stat| states.contains(&stat.state) && stat.flags & WORKER == 0)
}

/// The call that a thread sleeps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Negative in a page fault, where it is in none.
    pub number: i64,
    /// Its registers, all of which the call need not use.
    pub arguments: [u64; 6],
}

impl Call {
    /// `NUMBER ARGUMENT... SP PC`, or fewer in none; `running` of one that does not sleep.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for (argument, word) in arguments.iter_mut().zip(words).take_while(|_| number >= 0) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments })
    }
}

/// What thread `thread` of process `id` sleeps in, `/proc/PID/task/TID/syscall`; `None` if it runs, or is not
/// to be looked at. proc_pid_syscall(5)
#[must_use]
pub fn call(id: u32, thread: u32) -> Option<Call> {
    Call::parse(&fs::read_to_string(format!("/proc/{id}/task/{thread}/syscall")).ok()?)
}

/// Whether stopping the process by a signal would show in a terminal: a shell with job control
/// would report it as stopped, and take the terminal back.
#[must_use]
pub fn is_in_foreground(id: u32) -> bool {
    procfs::stat(id).is_some_and(|stat| {
        stat.terminal != 0 && i64::from(stat.foreground) == i64::from(stat.group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_that_are_refused() {
        assert_eq!(pin(0).unwrap_err(), Refusal::NotAnId(0));
        assert_eq!(pin(-4).unwrap_err(), Refusal::NotAnId(-4));
        assert_eq!(pin(i32::MAX).unwrap_err(), Refusal::NoProcess(i32::MAX));
        let own = pin(getpid().as_raw_nonzero().get()).unwrap();
        assert!(matches!(examine(&own), Err(Refusal::Ourselves(_))));
        assert_eq!(examine(&pin(1).unwrap()), Err(Refusal::First));
    }

    #[test]
    fn calls_are_read_with_their_arguments() {
        assert_eq!(Call::parse("running\n"), None);
        let fault = Call { number: -1, arguments: [0; 6] };
        assert_eq!(Call::parse("-1 0x7ffe 0x7f12\n"), Some(fault));
        let text = "17 0x3 0x7f00 0x1000 0x20 0x0 0xffffffffffffffff 0x7ffe 0x7f12\n";
        let arguments = [3, 0x7f00, 0x1000, 0x20, 0, u64::MAX];
        assert_eq!(Call::parse(text), Some(Call { number: 17, arguments }));
    }

    #[test]
    fn the_dead_are_refused_and_noticed() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let id = child.id().cast_signed();
        let pinned = pin(id).unwrap();
        assert_eq!(examine(&pinned), Ok(()));
        assert!(!pinned.has_ended());
        child.kill().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(pinned.has_ended(), "a zombie has ended");
        assert!(lives(std::process::id()) && !lives(child.id()));
        assert_eq!(pin(id).unwrap_err(), Refusal::NoProcess(id));
        child.wait().unwrap();
        assert_eq!(pin(id).unwrap_err(), Refusal::NoProcess(id));
    }
}
