//! A regulator that is started before its job, by the process that is about to become the job.
//!
//! `discnice run --polite` executes the command in its own place, so the regulator must be another
//! process. It is not a child of any process of the job, gets no signals from the terminal, and
//! holds none of the command's descriptors, so the command's parent, its terminal and its pipes are
//! the command's alone.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use discnice_processes::fork;
use discnice_processes::tree::Process;

/// Its keeper has nothing to do but to wait for its end.
const SELDOM: Duration = Duration::from_secs(3600);

/// Holds the regulator back until this process has executed the command, or has ended.
#[derive(Debug)]
#[must_use]
pub struct HeldBack {
    /// Closed by exec(2), by the end of the process, or by drop.
    _pipe: OwnedFd,
}

/// Starts a process that will call `regulate` for this one.
///
/// # Errors
/// As fork(2) and pipe(2); `Unsupported` in a program with several threads, and where `/proc` does
/// not show this process.
pub fn start(mut regulate: impl FnMut(Process)) -> io::Result<HeldBack> {
    let job = Process::find(std::process::id())
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "/proc is not to be read"))?;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    fork::detached(reader, |mut executed| {
        // An interrupt that is meant for the job does not reach this session, but a shell's
        // hang-up of all its jobs may. What ends a guardian or a reader must not end us either.
        fork::ignore(&[libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]);
        let _ = rustix::thread::set_name(c"discnice-polite");
        // Nothing is ever written; the end comes with exec(2).
        let _ = executed.read(&mut [0]);
        drop(executed);
        let go_on = || ControlFlow::Continue(());
        // If there is no process for that, no harm is done: the command runs unregulated.
        let _ = fork::kept(SELDOM, go_on, || {
            fork::ignore(&[libc::SIGCHLD]);
            if job.stat().is_some() {
                regulate(job);
            }
        });
    })?;
    Ok(HeldBack { _pipe: writer })
}
