//! Listening to what a command prints on its terminal (`--metric terminal`).
//!
//! The command gets a terminal of its own in the place of those of standard output and standard error that are the
//! terminal; a process copies every byte from there to the real one. Its input, its session, its process group and its
//! controlling terminal stay, so ^C, ^Z and a shell's job control work as before.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::{Context, bail};
use discnice_processes::fork;
use discnice_progress::control::metric::terminal::TerminalReader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::stdio;
use rustix::termios::{
    OptionalActions, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::child;

/// How long what the command has printed is waited for at its end, should others go on with its terminal.
const REST: Duration = Duration::from_millis(200);
/// A terminal that takes nothing is asked again after so long at the latest.
const AGAIN: Duration = Duration::from_secs(1);

/// The terminal of a command, and the process that copies from it.
#[derive(Debug)]
pub struct Tap {
    real: File,
    ours: OwnedFd,
    /// The command's end, until the command has it.
    theirs: RefCell<Option<File>>,
    /// Standard output, and standard error.
    taken: [bool; 2],
    size: Cell<Option<Winsize>>,
    /// Ends with the process that copies.
    copied: OwnedFd,
}

impl Tap {
    /// Makes a terminal and starts to copy from it.
    ///
    /// # Errors
    /// Neither standard output nor standard error is a terminal, or none is to be had.
    pub fn begin() -> anyhow::Result<Self> {
        let (real, taken) = real()?;
        let told = "--metric terminal: no terminal for the command";
        let reader = TerminalReader::new().context(told)?;
        let (ours, theirs) = pair(&real).context(told)?;
        let (copied, open) = pipe_with(PipeFlags::CLOEXEC).context(told)?;
        let open = File::from(open);
        let tap = Self {
            size: Cell::new(tcgetwinsize(&real).ok()),
            real,
            ours,
            theirs: RefCell::new(None),
            taken,
            copied,
        };
        // While this copy has the command's end, the command's own end is not the last.
        fork::child(|| {
            fork::close(&theirs);
            tap.copy(reader);
        })
        .context(told)?;
        drop(open);
        tap.theirs.replace(Some(theirs));
        Ok(tap)
    }

    /// Gives this process, which is about to become the command, the terminal.
    pub fn enter(&self) {
        let Some(theirs) = self.theirs.take() else { return };
        // What cannot be replaced stays as it is.
        if self.taken[0] {
            let _ = stdio::dup2_stdout(&theirs);
        }
        if self.taken[1] {
            let _ = stdio::dup2_stderr(&theirs);
        }
    }

    /// Follows the size of the real terminal while the command runs.
    pub fn look(&self) {
        drop(self.theirs.take());
        let Ok(size) = tcgetwinsize(&self.real) else { return };
        if self.size.replace(Some(size)) == Some(size) {
            return;
        }
        let _ = tcsetwinsize(&self.ours, size);
        // It may have asked for the size already, when the real terminal's signal came.
        if let Some(child) = child::id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(child, Signal::WINCH);
        }
    }

    /// Returns when all that the command has printed is on the real terminal. What processes print that it leaves
    /// behind is copied further on.
    pub fn finish(self) {
        drop(self.theirs.take());
        let rest = Timespec::try_from(REST).ok();
        let _ = poll(&mut [PollFd::new(&self.copied, PollFlags::IN)], rest.as_ref());
    }

    /// Copies until no process has the command's end any more.
    fn copy(&self, mut reader: TerminalReader) {
        // Signals of the terminal are the command's; those that end a shell's jobs do not end what the command prints.
        let _ = rustix::process::setsid();
        fork::ignore(&[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE]);
        let _ = rustix::thread::set_name(c"discnice-copy");
        if let Ok(nowhere) = File::options().read(true).write(true).open("/dev/null") {
            let _ = stdio::dup2_stdin(&nowhere);
            let _ = stdio::dup2_stdout(&nowhere);
            let _ = stdio::dup2_stderr(&nowhere);
        }
        let mut printed = [0; 16 * 1024];
        loop {
            match rustix::io::read(&self.ours, &mut printed) {
                Err(Errno::INTR) => {}
                // EIO is how the last one's end shows.
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let printed = printed.get(..length).unwrap_or_default();
                    reader.hear(printed);
                    print(&self.real, printed);
                }
            }
        }
    }
}

/// The real terminal, and which of standard output and standard error it is.
fn real() -> anyhow::Result<(File, [bool; 2])> {
    let both = [stdio::stdout(), stdio::stderr()];
    let Some(first) = both.into_iter().find(|one| isatty(*one)) else {
        bail!(
            "--metric terminal: neither standard output nor standard error is a terminal; have the command write a log, and say --metric progress:PATH"
        );
    };
    let real = File::from(rustix::io::fcntl_dupfd_cloexec(first, 3)?);
    let device = real.metadata()?.rdev();
    let is_it =
        |one| isatty(one) && rustix::fs::fstat(one).is_ok_and(|stat| stat.st_rdev == device);
    Ok((real, both.map(is_it)))
}

/// Both ends of a new terminal of the same size and settings, which changes no byte.
fn pair(real: &File) -> io::Result<(OwnedFd, File)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let mut settings = tcgetattr(real)?;
    settings.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &settings)?;
    if let Ok(size) = tcgetwinsize(real) {
        tcsetwinsize(&ours, size)?;
    }
    Ok((ours, theirs.into()))
}

/// Prints all of it, unless the terminal is gone.
fn print(mut real: &File, mut rest: &[u8]) {
    while !rest.is_empty() {
        match real.write(rest) {
            Ok(length) => rest = rest.get(length..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let again = Timespec::try_from(AGAIN).ok();
                let _ = poll(&mut [PollFd::new(real, PollFlags::OUT)], again.as_ref());
            }
            Err(_) => return,
        }
    }
}
