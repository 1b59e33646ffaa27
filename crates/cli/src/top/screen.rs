//! The terminal: taken when the view begins, given back when it ends, by a key, a signal, an
//! error or a panic.

use std::io::{self, Stdout};
use std::iter;
use std::process::id;

use discnice_sys::procfs;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getsid, kill_current_process_group};

use super::typing;

/// The terminal while the view has it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal cannot be set up.
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
        // A new one draws all. To clear the old one, ratatui would ask the terminal where the cursor is, and not all answer.
        execute!(screen(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(screen()))?;
        Ok(())
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
    let taken = typing::read_without_waiting();
    taken.and_then(|()| execute!(screen(), EnterAlternateScreen)).inspect_err(|_| give_back())
}

/// What fails here fails because the terminal is gone.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(screen(), LeaveAlternateScreen, Show);
}
