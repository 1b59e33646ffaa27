//! How a command is made regulated and executed in our place, like nice(1): its process id, its
//! parent, its terminal, its signals and its descriptors are those that it would have had.

#![allow(unsafe_code, reason = "exec, fork and signals")]

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{Mechanism, Reason};
use discnice_ledger::{MemberId, State, Token};
use discnice_regulator::{Linux, Regulator, Thread};
use discnice_sys::block::{BlockId, Store};
use discnice_sys::process::{self, Usage};
use discnice_sys::procfs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::classes::MappedClass;
use crate::program::ProgramKind;
use crate::{child, inheritance, memory};

/// What carries the library and the class into the command.
pub type Variables = Vec<(&'static str, OsString)>;

/// Bars this process, and so the command and its children, from rights that it does not have: a setuid program runs
/// as any other, and can be held as any other.
///
/// # Errors
/// The kernel's.
pub fn bar_from_rights() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true).map_err(io::Error::from)
}

/// The variables that carry the library and the class into the command.
pub fn variables(
    found: &MappedClass,
    member: Option<MemberId>,
    library: &Path,
) -> [(&'static str, OsString); 2] {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|list| !list.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    [("LD_PRELOAD", preload), ("DISCNICE", token(found, member))]
}

/// What leads the library to the class and to the member that it is, and to the directory of blocks that are files
/// where one is.
fn token(found: &MappedClass, member: Option<MemberId>) -> OsString {
    let blocks = [Some(found.block), found.class.board()];
    let is_file = |id: &BlockId| matches!(id.store(), Some(Store::File(_)));
    let needed = blocks.iter().flatten().any(is_file);
    let private = needed.then(|| discnice_paths::runtime().ok()).flatten();
    let directory = private.as_ref().map(|private| private.path().as_os_str().as_bytes());
    let token = Token { block: found.block, nonce: found.class.nonce(), member, directory };
    let mut text = Vec::new();
    token.write(|part| text.extend_from_slice(part));
    OsString::from_vec(text)
}

/// Those of them that this kind of program gets: a dynamic linker that cannot load the library says so on standard
/// error, or ends.
pub fn for_program(kind: ProgramKind, variables: [(&'static str, OsString); 2]) -> Variables {
    // A static program may hand both on to one that is not.
    let loads = matches!(
        kind,
        ProgramKind::Dynamic | ProgramKind::Unknown | ProgramKind::Static | ProgramKind::Go
    );
    variables.into_iter().filter(|(name, _)| loads || *name != "LD_PRELOAD").collect()
}

/// Makes this process a member of the class, which keeps being so as the command. Until it executes that
/// ([`expect_command`]) it charges itself.
pub fn enlist(found: &MappedClass, name: &OsStr) -> Option<MemberId> {
    // What this program read to start, and wrote into files of its own, is not the job's.
    let Usage { read, written } = process::usage();
    let before = Charged { read, written };
    let (id, member) = found.class.register(process::id(), before, process::exists)?;
    let base = Path::new(name).file_name().unwrap_or(name);
    member.set_name(base.as_bytes());
    if let (Some(held), Some(started)) = (found.class.held(id), started()) {
        held.begin(member, started);
        held.set_before(before);
    }
    member.set_state(State::Active);
    Some(id)
}

/// Notes that this process, which is that member, is about to execute the command: what is not charged by our library then
/// is charged from outside.
pub fn expect_command(found: &MappedClass, id: MemberId) {
    if let Some(member) = found.class.member(id, process::id()) {
        member.set_state(State::Executing);
    }
}

/// Has this process, which is that member, charged and held from outside.
pub fn leave_to_watcher(found: &MappedClass, id: MemberId) {
    if let (Some(member), Some(held)) =
        (found.class.member(id, process::id()), found.class.held(id))
    {
        held.set_how(Some(Mechanism::Ptrace), Reason::PerChild);
        member.set_state(State::Outside);
    }
}

/// Returns when this process started; `None` in a PID namespace with numbers that `/proc` does not
/// show: others see another process by the number that it is listed by.
fn started() -> Option<u64> {
    let stat = || procfs::stat(process::id());
    discnice_supervisor::shows_our_numbers().then(stat)?.map(|stat| stat.started)
}

/// Brings what the program at `path` reads to start into the page cache, at the class's rate, as
/// its member.
pub fn bring_in(found: &MappedClass, member: MemberId, path: &Path) {
    let class = found.class;
    let Some(member) = class.member(member, process::id()) else { return };
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
    let (host, thread) = (Linux, Thread::default());
    let regulator = Regulator::new(&host, class, member.books());
    discnice_regulator::startup::program(&regulator, &thread, libc::AT_FDCWD, path.as_ptr());
}

/// Executes the command in our place; returns only the error.
pub fn execute(command: &[OsString], variables: &[(&str, OsString)]) -> io::Error {
    let arguments: Result<Vec<CString>, _> =
        command.iter().map(|word| CString::new(word.as_bytes())).collect();
    let Ok(arguments) = arguments else { return io::Error::from_raw_os_error(libc::EINVAL) };
    let Some(program) = arguments.first() else {
        return io::Error::from_raw_os_error(libc::ENOENT);
    };
    let block = environment(variables);
    let argument_list = pointers(&arguments);
    let block_list = pointers(&block);
    inheritance::restore();
    // SAFETY: both lists end with a null pointer and live until the process is replaced.
    unsafe {
        libc::execvpe(program.as_ptr(), argument_list.as_ptr(), block_list.as_ptr());
    }
    io::Error::last_os_error()
}

fn environment(variables: &[(&str, OsString)]) -> Vec<CString> {
    let own = variables.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    std::env::vars_os()
        .filter(|(name, _)| variables.iter().all(|(own, _)| name != own))
        .chain(own)
        .filter_map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec()).ok()
        })
        .collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
    /// With this exit status, before it became the command.
    Unstarted(u8),
}

impl Ended {
    /// Ends this process in the same way.
    pub fn repeat(self) -> std::process::ExitCode {
        match self {
            Self::Exited(status) | Self::Unstarted(status) => std::process::ExitCode::from(status),
            Self::Killed(signal) => {
                // SAFETY: ends this process as the child was ended; without a core of ours.
                unsafe {
                    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                    libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal);
                }
                // A signal that does not end a process by default cannot have ended the child.
                std::process::ExitCode::from(128u8.saturating_add(signal.unsigned_abs() as u8))
            }
        }
    }
}

/// How often a [`JobObserver`] is called.
pub const LOOK: Duration = Duration::from_millis(20);

/// What looks at the job while it runs.
pub type JobObserver<'a> = &'a mut dyn FnMut();

/// Runs `command` in a new process and waits for it, calling `watch` every [`LOOK`]. Signals of the
/// terminal reach both and are left to the child; others are passed on to it.
///
/// # Errors
/// No process could be made.
pub fn supervise(
    command: impl FnOnce() -> u8,
    watch: Option<JobObserver<'_>>,
) -> io::Result<Ended> {
    let without_memory = memory::leave_it_to_the_child();
    let failure = Failure::new();
    // Where it is ignored, which the command inherits, the kernel keeps no status of a child for us.
    // SAFETY: sets the disposition of a signal.
    let child_ends = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    child::leave_first_place();
    // SAFETY: this process has one thread, so the child may do everything.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => {
            let error = io::Error::last_os_error();
            without_memory();
            // SAFETY: gives the command what there was.
            unsafe { libc::signal(libc::SIGCHLD, child_ends) };
            return Err(error);
        }
        0 => {
            without_memory();
            // SAFETY: gives the command what there was.
            unsafe { libc::signal(libc::SIGCHLD, child_ends) };
            let status = command();
            failure.tell();
            // SAFETY: ends the child without running what the parent will run.
            unsafe { libc::_exit(status.into()) }
        }
        _ => {}
    }
    child::begin(pid);
    if let Some(watch) = watch {
        watch_until_the_end(pid, watch);
    }
    let status = child::await_end(pid)?;
    let exited = libc::WEXITSTATUS(status) as u8;
    Ok(match libc::WIFSIGNALED(status) {
        true => Ended::Killed(libc::WTERMSIG(status)),
        false if failure.is_told() => Ended::Unstarted(exited),
        false => Ended::Exited(exited),
    })
}

/// How a child tells that it did not become the command: a pipe, which execve(2) closes. `None` if there are no descriptors.
struct Failure(Option<(OwnedFd, OwnedFd)>);

impl Failure {
    fn new() -> Self {
        Self(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok())
    }

    fn tell(&self) {
        if let Some((_, to)) = &self.0 {
            let _ = rustix::io::write(to, &[0]);
        }
    }

    fn is_told(&self) -> bool {
        self.0.as_ref().is_some_and(|(from, _)| rustix::io::read(from, &mut [0]) == Ok(1))
    }
}

/// Whether [`supervise`] failed before there was a child: by fork(2), not by waitpid(2).
pub fn is_alone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

/// Calls `watch` until the child has ended. Where the kernel has no descriptors of processes
/// (before Linux 5.3) it is not called.
fn watch_until_the_end(child: i32, watch: JobObserver<'_>) {
    let Some(pid) = Pid::from_raw(child) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let mut next = Instant::now() + LOOK;
    loop {
        let rest = next.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).unwrap_or_default();
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&rest)) {
            Ok(0) => {
                watch();
                // After a suspension of the machine the ticks that were missed are not made up for.
                next = (next + LOOK).max(Instant::now());
            }
            // A signal was passed on.
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
