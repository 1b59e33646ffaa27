//! The guardian: a second process that continues a stopped job when its regulator dies.
//!
//! The regulator tells it through a pipe what it is about to stop and what it has continued. When
//! the regulator ends, in whatever way, the pipe's end tells the guardian, which continues all that
//! is still stopped by it and ends itself. If the guardian dies first, the next message fails and the
//! regulator starts another. Only if both die within one look (a quarter of a second) does a job
//! stay stopped, until the next process of the user's looks at the [record](crate::hold_record).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::hold_record::{HoldKind, HoldRecord, settle_abandoned};
use crate::tree::{PROCESS, Process};
use crate::{fork, hold_record, stop_signal};

/// One message: what, and of which process. Shorter than `PIPE_BUF`, so never torn (pipe(7)).
const LENGTH: usize = 1 + PROCESS;
const STOPPED: u8 = b'S';
const CONTINUED: u8 = b'C';
const STILL_THERE: u8 = b'P';

/// The regulator's end.
#[derive(Debug)]
pub struct Guardian {
    pipe: File,
    stopped: HashSet<Process>,
    /// `None` where there is no place for one.
    record: Option<HoldRecord>,
}

impl Guardian {
    /// Starts a guardian.
    ///
    /// # Errors
    /// As fork(2) and pipe(2); `Unsupported` in a program with several threads, as its copy could
    /// hold locks of threads that it does not have.
    pub fn start() -> io::Result<Self> {
        let record = HoldRecord::begin(HoldKind::Stopped);
        Ok(Self { pipe: start(record.as_ref())?, stopped: HashSet::new(), record })
    }

    /// Stops a process and tells the guardian. Returns false if the process is gone, or was already
    /// stopped by another process, which is then responsible for continuing it.
    ///
    /// # Errors
    /// As pidfd_send_signal(2), or where no guardian can be had: then nothing was stopped.
    pub fn stop(&mut self, process: Process) -> io::Result<bool> {
        if self.stopped.contains(&process) {
            return Ok(false);
        }
        if process.stat().is_none() || stop_signal::is_stopping(process) {
            return Ok(false);
        }
        // The guardian learns it first: to continue a process that runs does no harm.
        self.stopped.insert(process);
        if let Some(record) = &mut self.record {
            record.add(process);
        }
        if let Err(error) = self.tell(STOPPED, process).and_then(|()| stop_signal::stop(process)) {
            self.stopped.remove(&process);
            self.strike(process);
            return Err(error);
        }
        Ok(true)
    }

    /// Stops a process again that [`Self::stop`] stopped and that was continued by a user or by the
    /// guardian of a regulator that was killed before. Returns true if it was still stopped.
    ///
    /// # Errors
    /// As [`Self::stop`]; `NotFound` when it is gone, or was never stopped.
    pub fn keep(&mut self, process: Process) -> io::Result<bool> {
        let found = process.stat().filter(|_| self.stopped.contains(&process));
        let stands = found.ok_or(io::ErrorKind::NotFound)?.state == b'T';
        if !stands {
            stop_signal::stop(process)?;
        }
        Ok(stands)
    }

    /// Continues everything that [`Self::stop`] stopped, but for what another process stopped meanwhile.
    pub fn resume(&mut self) {
        for process in std::mem::take(&mut self.stopped) {
            self.go_on(process);
        }
    }

    /// Continues one process, if [`Self::stop`] stopped it and no other process meanwhile.
    pub fn resume_one(&mut self, process: Process) {
        if self.stopped.remove(&process) {
            self.go_on(process);
        }
    }

    fn go_on(&mut self, process: Process) {
        // Gone meanwhile, or not ours to signal any more: nothing left to continue.
        let _ = go_on(process, self.record.as_ref().map(HoldRecord::name));
        let _ = self.tell(CONTINUED, process);
        self.strike(process);
    }

    /// Strikes a process from the record.
    fn strike(&mut self, process: Process) {
        if let Some(record) = &mut self.record {
            record.remove(process);
        }
    }

    /// Makes sure that there is a guardian; call while something is stopped.
    ///
    /// # Errors
    /// Where none can be had. Everything has been continued then.
    pub fn check(&mut self) -> io::Result<()> {
        let Some(&any) = self.stopped.iter().next() else { return Ok(()) };
        self.tell(STILL_THERE, any).inspect_err(|_| self.resume())
    }

    fn tell(&mut self, what: u8, process: Process) -> io::Result<()> {
        if self.pipe.write_all(&message(what, process)).is_ok() {
            return Ok(());
        }
        self.pipe = start(self.record.as_ref())?;
        for &stopped in &self.stopped {
            self.pipe.write_all(&message(STOPPED, stopped))?;
        }
        Ok(())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.resume();
    }
}

/// Continues what was left stopped by regulators that were killed together with their guardians.
pub fn continue_abandoned() {
    // One that is gone meanwhile, or runs, has nothing to be continued.
    settle_abandoned(HoldKind::Stopped, |process, name| drop(go_on(process, Some(name))));
}

/// Continues a process that the record of this name lists.
fn go_on(process: Process, own: Option<&str>) -> io::Result<()> {
    stop_signal::go_on(process, |process| hold_record::others_list(HoldKind::Stopped, process, own))
}

fn message(what: u8, process: Process) -> [u8; LENGTH] {
    let mut bytes = [what; LENGTH];
    bytes[1..].copy_from_slice(&process.to_bytes());
    bytes
}

fn parse(bytes: &[u8; LENGTH]) -> Option<(u8, Process)> {
    let [what, process @ ..] = *bytes;
    Some((what, Process::from_bytes(process)?))
}

fn start(record: Option<&HoldRecord>) -> io::Result<File> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let writer = File::from(writer);
    let copy = &writer;
    fork::child(move || {
        fork::close(copy);
        guard(reader, record.map(HoldRecord::name));
        // All of it goes on now.
        record.into_iter().for_each(HoldRecord::end);
    })?;
    Ok(writer)
}

/// The guardian's whole life.
fn guard(reader: OwnedFd, record: Option<&str>) {
    // A terminal's interrupt or hang-up that ends the regulator must not end the guardian.
    let _ = rustix::process::setsid();
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]);
    let mut pipe = File::from(reader);
    let mut stopped = HashSet::new();
    let mut bytes = [0; LENGTH];
    while pipe.read_exact(&mut bytes).is_ok() {
        match parse(&bytes) {
            Some((STOPPED, process)) => drop(stopped.insert(process)),
            Some((CONTINUED, process)) => drop(stopped.remove(&process)),
            _ => {}
        }
    }
    for process in stopped {
        let _ = go_on(process, record);
    }
}
