//! How a program gets below a filter: everything that happens before it is executed.
#![allow(unsafe_code, reason = "fork(2) without exec")]

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc;
use std::thread;

use discnice_ledger::{Board, Class};
use discnice_sys::{Errno, seccomp};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::filter::{self, Reach};
use crate::supervisor::{self, Shared};
use crate::table::Table;
use crate::{interrupt, pair, proc};

/// Descriptors that two supervisors need to begin with: the listener, two for each other, their table, and some to spare.
const NEEDED: usize = 12;
/// Exit status of a program that lost its supervisor while that took over: discnice's own error.
const LOST: i32 = 125;
/// What the thread needs that hands the listener over.
const STACK: usize = 64 << 10;

/// Why a program cannot be regulated in this way. Nothing has changed then, except, if a listener
/// was there already, that the program cannot gain rights by executing others.
#[derive(Debug)]
pub enum Refused {
    /// The kernel has no seccomp(2), or no user notification.
    NotBuilt,
    /// The kernel is older than Linux 5.19.
    TooOld,
    /// A supervisor is there already, as for a nested use; there can be one only.
    Taken,
    /// `/proc` is missing, or shows other numbers of processes than those of this PID namespace: what is asked there of a
    /// thread would be about another.
    Numbers,
    /// No process, memory or descriptors.
    Exhausted(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str("this kernel has no seccomp user notification"),
            Self::TooOld => f.write_str(
                "this kernel is older than Linux 5.19, whose seccomp user notification cannot \
                 hold programs that use timers",
            ),
            Self::Taken => f.write_str(
                "a supervisor of system calls is there already (an outer discnice, or a container's), \
                 and Linux allows only one",
            ),
            Self::Numbers => f.write_str(
                "/proc does not show the processes of this PID namespace; mount it there, as `unshare --mount-proc` does",
            ),
            Self::Exhausted(error) => write!(f, "no supervisor could be started: {error}"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Exhausted(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Exhausted(error)
    }
}

impl From<rustix::io::Errno> for Refused {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Exhausted(errno.into())
    }
}

fn refused(errno: Errno) -> Refused {
    match errno.0 {
        libc::ENOSYS | libc::EOPNOTSUPP => Refused::NotBuilt,
        libc::EINVAL => Refused::TooOld,
        libc::EBUSY => Refused::Taken,
        other => Refused::Exhausted(io::Error::from_raw_os_error(other)),
    }
}

/// Checks that this process can have a filter and a supervisor.
///
/// # Errors
/// The reason why it cannot.
pub fn probe() -> Result<(), Refused> {
    seccomp::probe().map_err(refused)?;
    if !proc::shows_our_numbers() {
        return Err(Refused::Numbers);
    }
    if seccomp::is_filtered() { try_listening() } else { Ok(()) }
}

/// Finds out if another filter of this process has a listener: a thread tries to have one, which ends with it.
fn try_listening() -> Result<(), Refused> {
    thread::scope(|scope| {
        let tried = || {
            seccomp::renounce_privileges()?;
            let listener = seccomp::install(&[filter::ALLOW])?;
            // SAFETY: a fresh descriptor without another owner.
            drop(unsafe { OwnedFd::from_raw_fd(listener) });
            Ok(())
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, tried)?;
        thread.join().unwrap_or(Ok(())).map_err(refused)
    })
}

/// What the supervisor shares with all members of its class.
type Known = (&'static Class, Option<&'static Board>);

/// Puts the calling process, which must have one thread, below a filter with a supervisor that
/// charges `class`: the process and its children are regulated from here on, whatever they execute.
/// The supervisor learns from the `board` if others are busy. If the supervisor is lost while it
/// takes over, `complain` is called, and this process exits with 125.
///
/// # Errors
/// The reason of the failure; the process is then as before (but see [`Refused::Taken`]).
pub fn enter(
    class: &'static Class,
    board: Option<&'static Board>,
    reach: Reach,
    complain: fn(&io::Error),
) -> Result<(), Refused> {
    seccomp::probe().map_err(refused)?;
    if !proc::shows_our_numbers() {
        return Err(Refused::Numbers);
    }
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    start((class, board), &theirs)?;
    drop(theirs);
    // Wait until the supervisor is there: afterwards only its answers let us go on.
    receive(&ours, None).map_err(|_| short())?;
    std::thread::scope(|scope| {
        let (hand, listener) = mpsc::channel();
        // Below the filter each call waits for an answer, exit_group(2) and write(2), too. A thread
        // that is not below it can hand the listener over, and end the process if no supervisor
        // takes it.
        let outside = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            if let Ok(listener) = listener.recv() {
                hand_over(&ours, &listener)
                    .and_then(|()| receive(&ours, None))
                    .unwrap_or_else(|error| give_up(&error, complain));
            }
        });
        outside?;
        seccomp::renounce_privileges().map_err(refused)?;
        let listener = seccomp::install(&filter::program(reach)).map_err(refused)?;
        // SAFETY: a fresh descriptor without another owner.
        let listener = unsafe { OwnedFd::from_raw_fd(listener) };
        // It waits for that.
        let _ = hand.send(listener);
        Ok(())
    })
}

/// Ends the process while its other thread waits for a supervisor that is not there.
fn give_up(error: &io::Error, complain: fn(&io::Error)) -> ! {
    complain(error);
    // SAFETY: ends the process.
    unsafe { libc::_exit(LOST) }
}

fn short() -> io::Error {
    io::Error::other("it lacks processes, memory or descriptors (see `ulimit -a`)")
}

/// Starts the supervisor as an orphan, so that the program finds no child that it has not forked.
fn start(known: Known, connection: &OwnedFd) -> io::Result<()> {
    // SAFETY: this process has one thread (the caller), so its children may do everything. clone(2) without flags is fork(2)
    // without a signal at the child's end, which the program would find pending if it is blocked; what glibc's fork does
    // besides is for threads and locks, and the child goes straight on to that function.
    unsafe {
        match libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                // A session of its own: no terminal's signal reaches it.
                libc::setsid();
                match libc::fork() {
                    0 => supervise(known, connection),
                    failed_or_child => libc::_exit(i32::from(failed_or_child < 0)),
                }
            }
            child => {
                let mut status = 0;
                // Also a child that sends no signal, and where the signal of those that do is ignored.
                while libc::waitpid(child as i32, &raw mut status, libc::__WALL) < 0 {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                if status != 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
        }
    }
    Ok(())
}

/// The supervisor's life.
fn supervise((class, board): Known, connection: &OwnedFd) -> ! {
    let served = settle_down(connection).and_then(|()| {
        let table = Table::new()?;
        has_room(connection)?;
        send(connection)?;
        let mut listener = None;
        receive(connection, Some(&mut listener))?;
        let listener = listener.ok_or(io::ErrorKind::UnexpectedEof)?;
        let shared = Shared { listener, class, board, table };
        let shared: &'static Shared = Box::leak(Box::new(shared));
        // Without one it makes another when it can.
        let peer = pair::start(shared).ok();
        send(connection)?;
        Ok((shared, peer))
    });
    match served {
        Ok((shared, peer)) => {
            // Its end would tell nothing any more.
            let _ = rustix::net::shutdown(connection, rustix::net::Shutdown::Both);
            supervisor::run(shared, peer)
        }
        // SAFETY: ends the process, which is a copy, without running what the original will run.
        Err(_) => unsafe { libc::_exit(1) },
    }
}

/// Lets go of everything that belongs to the program.
fn settle_down(connection: &OwnedFd) -> io::Result<()> {
    pair::keep_only(&[connection.as_raw_fd()]);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    rustix::process::chdir("/")?;
    rustix::thread::set_name(c"discnice-notify")?;
    raise_descriptors();
    interrupt::prepare()
}

/// Checks that enough descriptors are free: once the filter is installed it is too late to report a
/// lack.
fn has_room(connection: &OwnedFd) -> io::Result<()> {
    let all: io::Result<Vec<_>> = (0..NEEDED).map(|_| connection.try_clone()).collect();
    all.map(drop)
}

/// One descriptor is held for each thread that is supervised.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, some threads are regulated without a look at their account.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn send(connection: &OwnedFd) -> io::Result<()> {
    rustix::net::send(connection, b"+", SendFlags::NOSIGNAL)?;
    Ok(())
}

fn hand_over(connection: &OwnedFd, listener: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let rights = [listener.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(connection, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for the other side's message; a descriptor in it goes to `listener`.
fn receive(connection: &OwnedFd, listener: Option<&mut Option<OwnedFd>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut message = [IoSliceMut::new(&mut byte)];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(connection, &mut message, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if let Some(listener) = listener {
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                *listener = rights.into_iter().next();
            }
        }
    }
    Ok(())
}
