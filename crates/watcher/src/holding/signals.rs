//! Stops a process by SIGSTOP and SIGCONT: the last resort, where neither ptrace(2) nor a cgroup is
//! to be had. The parent can see it; a guardian process continues the stopped processes if we are
//! killed.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use discnice_ledger::outside::Mechanism;
use discnice_processes::guardian::Guardian;
use discnice_processes::tree::Process;

use super::hold::{Grip, Hold, Refused};
use crate::process;

/// The guardian that all holds by signals share; started when the first is needed.
#[derive(Debug, Clone, Default)]
pub struct SharedGuardian(Rc<RefCell<Option<Guardian>>>);

impl SharedGuardian {
    /// Starts the guardian now, as it cannot be once this process has threads.
    pub(crate) fn prepare(&self) {
        let _ = self.with(|_| Ok(()));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Guardian) -> io::Result<T>) -> io::Result<T> {
        let mut guardian = self.0.borrow_mut();
        if guardian.is_none() {
            *guardian = Some(Guardian::start()?);
        }
        guardian.as_mut().map_or_else(|| Err(io::ErrorKind::NotFound.into()), act)
    }
}

/// A hold by signals.
#[derive(Debug)]
pub struct Signals {
    process: Process,
    guardian: SharedGuardian,
    stopped: bool,
}

impl Signals {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(process: Process, guardian: SharedGuardian) -> Self {
        Self { process, guardian, stopped: false }
    }

    /// Keeps the process stopped. Any process with the right to signal it can have continued it,
    /// and it would run free for as long as it owes, which would be ever longer.
    fn keep(&mut self) -> Result<Grip, Refused> {
        match self.guardian.with(|guardian| guardian.keep(self.process)) {
            Ok(stands) => Ok(if stands { Grip::Firm } else { Grip::Loose }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Grip::Loose),
            Err(_) => Err(Refused::Forbidden),
        }
    }
}

impl Hold for Signals {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Signals
    }

    fn press(&mut self) -> Result<Grip, Refused> {
        // A shell can have brought it there, and continued it, since it was stopped.
        if process::is_in_foreground(self.process.id()) {
            self.release();
            return Err(Refused::Foreground);
        }
        if self.stopped {
            return self.keep();
        }
        match self.guardian.with(|guardian| guardian.stop(self.process)) {
            Ok(stopped) => {
                self.stopped = stopped;
                Ok(if stopped { Grip::Firm } else { Grip::Loose })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Grip::Loose),
            Err(_) => Err(Refused::Forbidden),
        }
    }

    fn tend(&mut self) {}

    fn release(&mut self) -> bool {
        if std::mem::take(&mut self.stopped) {
            // The guardian continues it if we cannot.
            let _ = self.guardian.with(|guardian| {
                guardian.resume_one(self.process);
                Ok(())
            });
        }
        true
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.release();
    }
}
