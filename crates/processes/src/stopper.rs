//! How a whole job is stopped and continued: the mechanism, which knows nothing of when or why.

use std::io;

use discnice_sys::deadline;

use crate::guardian::Guardian;
use crate::tree::{Process, Tree};

//= ms-manners/7.2-suspend
/// A mechanism that stops and continues a job. Its contract:
///
/// 1. after [`Stopper::stop`] nothing of the job runs, except for a moment what it wakes from a
///    sleep;
/// 2. [`Stopper::keep`] is called at least twenty times a second while it is stopped, and stops
///    what woke or was forked meanwhile;
/// 3. [`Stopper::resume`] continues what was stopped by it and nothing else;
/// 4. after an error the job runs;
/// 5. a process that is killed while the job is stopped leaves nothing stopped; a process that has
///    a [`deadline`] is killed when it is stopped itself, or hangs.
pub trait Stopper {
    /// Stops the job.
    ///
    /// # Errors
    /// Where that is not possible: another user's process, one that forks faster than it can be
    /// stopped, one in the foreground of a terminal where only its shell's help would do.
    fn stop(&mut self, tree: &mut Tree) -> io::Result<()>;

    /// Keeps it stopped.
    ///
    /// # Errors
    /// As [`Stopper::stop`].
    fn keep(&mut self, tree: &mut Tree) -> io::Result<()>;

    /// Continues it.
    fn resume(&mut self);
}

/// Stopping by SIGSTOP and SIGCONT. A guardian process continues the job if we are killed.
#[derive(Debug)]
pub struct Signals(Guardian);

impl Signals {
    /// Starts the guardian.
    ///
    /// # Errors
    /// As [`Guardian::start`].
    pub fn start() -> io::Result<Self> {
        Ok(Self(Guardian::start()?))
    }
}

/// Rounds after which a job that forks faster than it can be stopped is let go.
const ROUNDS: u32 = 20;

impl Stopper for Signals {
    fn stop(&mut self, tree: &mut Tree) -> io::Result<()> {
        let guardian = &mut self.0;
        deadline::arm();
        for _ in 0..ROUNDS {
            let mut new = false;
            for member in tree.iter() {
                match guardian.stop(Process::of(member)) {
                    Ok(stopped) => new |= stopped,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        guardian.resume();
                        return Err(error);
                    }
                }
            }
            if !new {
                return Ok(());
            }
            tree.refresh();
        }
        guardian.resume();
        Err(io::Error::other("the job starts processes faster than they can be stopped"))
    }

    fn keep(&mut self, _: &mut Tree) -> io::Result<()> {
        deadline::renew();
        self.0.check()
    }

    fn resume(&mut self) {
        self.0.resume();
        deadline::disarm();
    }
}
