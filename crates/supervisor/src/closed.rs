//! Files that programs have closed, with something left to be done: small ones are written back then.
//!
//! The supervisor is not told of close(2) ([`crate::calls`]). It finds out when the descriptor's number means another file at
//! the next call, when the process ends, or within two seconds. A thread of its own opens such a file by its
//! path for a moment; what was renamed or deleted meanwhile is left to the kernel.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use discnice_ledger::Class;
use discnice_regulator::{Regulator, Thread};

use crate::descriptor::Descriptor;
use crate::host::{Accounted, Target};
use crate::lead;
use crate::process::Process;

/// Files that may wait: with more the disk is slower than the program, which then waits for it.
const MOST: usize = 64;
/// Longest time for which a program waits: the path of a file may lead into a file system of another user that never answers.
const PATIENCE: Duration = Duration::from_millis(200);
/// Longest time for which the end of a supervisor waits for all files.
const LAST: Duration = Duration::from_secs(2);

/// Does what is left to be done with a file.
type Work = Box<dyn FnOnce() + Send>;

/// Settles what a file has cost that `thread` has closed; returns what is left to be done with it.
pub fn left(
    class: &'static Class,
    process: &Arc<Process>,
    (regulator, thread): (&Regulator<'_, Target<'_>>, &Thread),
    descriptor: Arc<Descriptor>,
) -> Option<Work> {
    let closing = regulator.close(thread, &descriptor.file);
    if closing.is_done(&descriptor.file) {
        return None;
    }
    let process = Arc::clone(process);
    Some(Box::new(move || {
        let Some(fd) = descriptor.reopen(process.id) else { return };
        let (accounted, held) = (Accounted::default(), Cell::new(0));
        let target = Target::new(&process, process.id, &accounted, &held);
        let regulator = target.regulator(class);
        regulator.finish(&Thread::default(), fd.as_raw_fd(), &descriptor.file, closing);
    }))
}

#[derive(Default)]
struct Queue {
    files: VecDeque<Work>,
    /// Set while a thread sees to them.
    is_served: bool,
    /// Set once a program has waited for too long, until the next file is seen to.
    is_stuck: bool,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.is_served && self.files.len() >= MOST
    }
}

/// Finishes closed files in a thread of its own, one after the other.
#[derive(Default)]
pub struct Finisher {
    queue: Mutex<Queue>,
    /// Told when a file has been taken from the queue, and when all is done.
    moved: Condvar,
}

impl fmt::Debug for Finisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finisher").field("files", &self.queue().files.len()).finish()
    }
}

impl Finisher {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finishes a file once there is room among those that wait; leaves it to the kernel if that takes too long.
    pub fn finish(&'static self, work: Work) {
        if self.await_room() {
            self.enqueue(work);
        }
    }

    /// Finishes a file, however many wait.
    pub fn enqueue(&'static self, work: Work) {
        let mut queue = self.queue();
        if !queue.is_served {
            queue.is_served = lead::aside(|| self.serve());
        }
        if queue.is_served {
            queue.files.push_back(work);
        }
    }

    /// Waits until there is room; returns false if that takes too long.
    fn await_room(&self) -> bool {
        let mut queue = self.queue();
        if queue.is_full() && !queue.is_stuck {
            drop(queue);
            lead::may_take_long();
            let is_full = |queue: &mut Queue| queue.is_full();
            let waited = self.moved.wait_timeout_while(self.queue(), PATIENCE, is_full);
            (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        queue.is_stuck = queue.is_full();
        !queue.is_stuck
    }

    fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        let next = queue.files.pop_front();
        (queue.is_served, queue.is_stuck) = (next.is_some(), false);
        self.moved.notify_all();
        next
    }

    /// Finishes what waits, until nothing does.
    fn serve(&self) {
        while let Some(work) = self.next() {
            work();
        }
    }

    /// Waits until all is done, but no longer than [`LAST`].
    pub fn await_all(&self) {
        let _ = self.moved.wait_timeout_while(self.queue(), LAST, |queue| queue.is_served);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_file_that_hangs_delays_a_program_once_and_loses_none_that_wait() {
        let finisher: &'static Finisher = Box::leak(Box::default());
        let done: &'static AtomicUsize = Box::leak(Box::default());
        let (release, released) = mpsc::channel();
        let note = move || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        finisher.finish(Box::new(move || released.recv().unwrap()));
        while !finisher.queue().files.is_empty() {
            std::thread::yield_now();
        }
        (0..MOST).for_each(|_| finisher.finish(Box::new(note)));
        let begun = Instant::now();
        finisher.finish(Box::new(note));
        assert!(begun.elapsed() >= PATIENCE, "it waits for room");
        let begun = Instant::now();
        (0..10).for_each(|_| finisher.finish(Box::new(note)));
        assert!(begun.elapsed() < PATIENCE, "{:?}: once", begun.elapsed());
        release.send(()).unwrap();
        finisher.await_all();
        assert_eq!(done.load(Ordering::Relaxed), MOST, "the others are the kernel's");
        finisher.finish(Box::new(note));
        finisher.await_all();
        assert_eq!(done.load(Ordering::Relaxed), MOST + 1, "another thread");
    }
}
