//! Threads that serve calls which may have to wait: as many as wait at a time.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A thread that nobody needs for so long ends.
const IDLE: Duration = Duration::from_secs(2);
/// Enough for the deepest call of ours several times over.
const STACK: usize = 128 << 10;

#[derive(Debug)]
struct State<J> {
    jobs: VecDeque<J>,
    idle: usize,
    threads: usize,
}

/// The threads, and what waits for them.
#[derive(Debug)]
pub struct Pool<J> {
    state: Mutex<State<J>>,
    wake: Condvar,
    serve: fn(J),
}

impl<J: Send + 'static> Pool<J> {
    /// A pool without threads, each of which will do `serve`.
    pub fn new(serve: fn(J)) -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, threads: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), serve }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a job done. Where no thread can be had it waits for the others; if there are none, the
    /// caller does it.
    pub fn submit(&'static self, job: J) {
        let mut state = self.lock();
        if state.idle > state.jobs.len() {
            state.jobs.push_back(job);
            drop(state);
            self.wake.notify_one();
            return;
        }
        let started = thread::Builder::new().stack_size(STACK).spawn(|| self.work()).is_ok();
        if started {
            state.threads += 1;
        } else if state.threads == 0 {
            drop(state);
            (self.serve)(job);
            return;
        }
        state.jobs.push_back(job);
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                (self.serve)(job);
                state = self.lock();
            }
            state.idle += 1;
            let (woken, waited) =
                self.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}
