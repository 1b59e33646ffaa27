//! Stops a process by its own tracer, where that is of the same class: a program below strace(1), which had 15 times its limit
//! without this, is made to wait with it.
//!
//! A traced process is stopped at its next call until its tracer has looked at it, so stopping the
//! tracer holds it. That is not so for every tracer (a debugger lets its program run from one
//! breakpoint to the next). The caller of `press` then sees that the held process goes on, and ends
//! this kind of hold.

use discnice_ledger::outside::Mechanism;
use discnice_processes::tree::Process;
use discnice_sys::procfs;

use super::{Freeze, Grip, Hold, Refused};
use crate::process;

/// A hold by the tracer.
#[derive(Debug)]
pub struct Tracer {
    process: u32,
    tracer: Process,
    freeze: Freeze,
}

impl Tracer {
    /// Nothing is held yet. `None` if the process has no such tracer.
    #[must_use]
    pub fn of(process: u32, is_known: impl FnOnce(u32) -> bool) -> Option<Self> {
        let tracer = process::tracer(process.cast_signed())?.unsigned_abs();
        let tracer = Process::find_now(tracer).filter(|found| is_known(found.id()))?;
        Some(Self { process, tracer, freeze: Freeze::new(tracer.id()) })
    }

    fn still_traces(&self) -> bool {
        process::tracer(self.process.cast_signed()) == Some(self.tracer.id().cast_signed())
            && self.tracer.stat().is_some()
    }
}

impl Hold for Tracer {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Ptrace
    }

    fn stops_tracer(&self) -> bool {
        true
    }

    fn press(&mut self) -> Result<Grip, Refused> {
        if !self.still_traces() {
            self.release();
            return Err(Refused::Traced);
        }
        if is_wanted(self.tracer.id()) {
            // It is to receive that first.
            self.release();
            return Ok(Grip::Loose);
        }
        match self.freeze.press_all() {
            // For itself, or for another one that it traces, it stands already.
            Err(Refused::Traced) if is_ours(self.tracer.id()) => Ok(Grip::Loose),
            other => other,
        }
    }

    fn tend(&mut self) {
        self.freeze.tend();
    }

    fn release(&mut self) -> bool {
        self.freeze.release()
    }
}

/// Whether a signal waits for a tracer, other than that what it traces has stopped: SIGCHLD waits for it all the time.
fn is_wanted(tracer: u32) -> bool {
    const STOPS: u64 = 1 << (libc::SIGCHLD - 1);
    process::threads(tracer).any(|thread| procfs::pending_signals(thread) & !STOPS != 0)
}

/// Whether we trace the process.
fn is_ours(id: u32) -> bool {
    process::tracer(id.cast_signed()) == Some(std::process::id().cast_signed())
}
