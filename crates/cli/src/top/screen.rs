//! The terminal: taken when the view begins, given back when it ends, by a key, a signal, an
//! error or a panic.

use std::io::{self, Stdout, stdin};
use std::iter;
use std::process::{ExitCode, id};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use discnice_sys::procfs;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getsid, kill_current_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;

/// The terminal, in our hands.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It cannot be set up.
    pub fn open() -> io::Result<Self> {
        // A panic aborts without unwinding, so that `drop` alone would not do.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(screen())).inspect_err(|_| give_back());
        Ok(Self { terminal: terminal? })
    }

    /// Shows a frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }

    /// Gives the terminal back and stops, with the process group, until the shell continues it; does nothing where there is no
    /// shell to do so.
    ///
    /// # Errors
    /// The terminal cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        if is_orphaned() {
            return Ok(());
        }
        give_back();
        kill_current_process_group(Signal::STOP)?;
        take()?;
        self.terminal.clear()
    }
}

/// Whether no process that would continue this one's group is above it: a shell is of its session, but of another group.
fn is_orphaned() -> bool {
    let mut above = iter::successors(Some(id()), |one| procfs::parent(*one)).filter_map(pid);
    let group = getpgrp();
    let shell = above.find(|one| getpgid(Some(*one)) != Ok(group));
    shell.is_none_or(|shell| getsid(Some(shell)).ok() != getsid(None).ok())
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.cast_signed())
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

#[allow(clippy::disallowed_methods, reason = "ratatui styles; `view` draws what was made visible")]
fn screen() -> Stdout {
    io::stdout()
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(screen(), EnterAlternateScreen).inspect_err(|_| give_back())
}

/// What fails here fails because the terminal is gone.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(screen(), LeaveAlternateScreen, Show);
}

/// Waits until something is typed, but no longer than `time`; returns whether the terminal has hung
/// up, which the reader of events would never return from.
pub fn is_gone_after(time: Duration) -> bool {
    let (input, time) = (stdin(), Timespec::try_from(time).unwrap_or_default());
    let mut asked = [PollFd::new(&input, PollFlags::IN)];
    // A signal only ends the wait.
    let answered = poll(&mut asked, Some(&time)).is_ok();
    answered && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Signals that want the view to end or to stop.
pub struct Signals {
    /// The last one that wants it to end; zero for none.
    end: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Watches from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch() -> io::Result<Self> {
        let signals = Self { end: Arc::default(), stop: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.end), number)?;
        }
        flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        Ok(signals)
    }

    /// The signal that wants the view to end.
    pub fn end(&self) -> Option<i32> {
        i32::try_from(self.end.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }

    /// Whether the view shall stop; once for each time.
    pub fn stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    /// Ends this process as the signal would have.
    pub fn repeat(&self, signal: i32) -> ExitCode {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        ExitCode::from(128u8.saturating_add(signal.unsigned_abs() as u8))
    }
}
