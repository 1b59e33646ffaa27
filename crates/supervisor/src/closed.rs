//! Files that programs have closed, with something left to be done: small ones are written back then.
//!
//! The supervisor is not told of close(2) ([`crate::calls`]). It finds out when the descriptor's number means another file at
//! the next call, when the process ends, or within two seconds. A thread of its own opens such a file by its
//! path for a moment; what was renamed or deleted meanwhile is left to the kernel.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use discnice_ledger::Class;
use discnice_regulator::{Closing, Thread};

use crate::descriptor::Descriptor;
use crate::host::{Accounted, Target};
use crate::lead;
use crate::process::Process;

/// Files that may wait: with more the disk is slower than the program, which then waits for it.
const MOST: usize = 64;
/// Longest time for which the end of a supervisor waits for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file, and what is left to be done with it.
#[derive(Debug)]
pub struct Closed {
    pub class: &'static Class,
    pub process: Arc<Process>,
    pub descriptor: Arc<Descriptor>,
    pub closing: Closing,
}

#[derive(Debug, Default)]
struct Queue {
    files: VecDeque<Closed>,
    /// Set while a thread sees to them.
    is_served: bool,
}

/// Finishes closed files, one after the other.
#[derive(Debug, Default)]
pub struct Finisher {
    queue: Mutex<Queue>,
    /// Told when all is done.
    done: Condvar,
}

impl Finisher {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finishes a file in a thread of its own; here, if too many wait for that one.
    pub fn finish(&'static self, closed: Closed) {
        if self.queue().files.len() < MOST {
            self.enqueue(closed);
        } else {
            closed.finish();
        }
    }

    /// Finishes a file in a thread of its own, however many wait for that one.
    pub fn enqueue(&'static self, closed: Closed) {
        if closed.closing.is_done(&closed.descriptor.file) {
            return;
        }
        let mut queue = self.queue();
        queue.files.push_back(closed);
        if !queue.is_served {
            queue.is_served = lead::aside(|| self.serve());
        }
    }

    fn next(&self) -> Option<Closed> {
        let mut queue = self.queue();
        let next = queue.files.pop_front();
        if next.is_none() {
            queue.is_served = false;
            self.done.notify_all();
        }
        next
    }

    /// Finishes what waits, until nothing does.
    fn serve(&self) {
        while let Some(next) = self.next() {
            next.finish();
        }
    }

    /// Waits until all is done, but no longer than [`PATIENCE`].
    pub fn await_all(&self) {
        let _ = self.done.wait_timeout_while(self.queue(), PATIENCE, |queue| queue.is_served);
    }
}

impl Closed {
    fn finish(&self) {
        let Self { class, process, descriptor, closing } = self;
        lead::may_take_long();
        let Some(fd) = descriptor.reopen(process.id) else { return };
        let (accounted, held) = (Accounted::default(), Cell::new(0));
        let target = Target::new(process, process.id, &accounted, &held);
        let regulator = target.regulator(class);
        regulator.finish(&Thread::default(), fd.as_raw_fd(), &descriptor.file, *closing);
    }
}
