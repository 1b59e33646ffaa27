//! The lead: one thread at a time receives calls, and serves each that it receives at once. Before it does
//! what may take long it passes the lead on, to a thread that waits for it or to a new one.
//!
//! So most calls are served without a switch from thread to thread, which costs more than all else that is
//! done for them; and there are as many threads as wait at a time.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::interrupt;

/// Time after which a thread ends to which the lead is not passed.
const IDLE: Duration = Duration::from_secs(2);
/// Enough for the deepest call of ours several times over.
const STACK: usize = 128 << 10;

thread_local! {
    static HELD: Cell<Option<&'static Lead>> = const { Cell::new(None) };
}

/// Passes the lead on, if this thread has it. Called before anything that may take long, or that
/// waits for a process with calls that are received here.
pub fn may_take_long() {
    if let Some(lead) = HELD.take() {
        lead.pass_on();
    }
}

/// Returns true if this thread has the lead.
pub fn is_here() -> bool {
    HELD.get().is_some()
}

/// Does something in a thread of its own; false where none can be had.
pub fn aside(work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().stack_size(STACK).spawn(work).is_ok()
}

#[derive(Debug)]
struct State {
    /// Set while no thread has the lead.
    offered: bool,
    /// Threads that wait for it.
    idle: usize,
}

/// The lead, and the threads that have it in turn.
pub struct Lead {
    state: Mutex<State>,
    wake: Condvar,
    receive: Box<dyn Fn() + Send + Sync>,
}

impl Lead {
    /// Creates a lead that no thread has. A thread that takes it calls `receive`, until it has
    /// passed the lead on.
    pub fn new(receive: impl Fn() + Send + Sync + 'static) -> Self {
        let state = State { offered: true, idle: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), receive: Box::new(receive) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lead whenever it is offered, for ever.
    pub fn follow(&'static self) -> ! {
        loop {
            self.follow_for(Duration::MAX);
        }
    }

    /// Takes the lead whenever it is offered, until it has not been offered for `patience`.
    fn follow_for(&'static self, patience: Duration) {
        while self.take(patience) {
            (self.receive)();
        }
    }

    fn take(&'static self, patience: Duration) -> bool {
        let mut state = self.lock();
        if !state.offered {
            state.idle += 1;
            let waited = self.wake.wait_timeout_while(state, patience, |state| !state.offered);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        if !state.offered {
            return false;
        }
        state.offered = false;
        drop(state);
        HELD.set(Some(self));
        interrupt::heed(true);
        true
    }

    /// Passes the lead on. If no thread can be started, calls wait until one of the existing
    /// threads is done: this one at last.
    fn pass_on(&'static self) {
        interrupt::heed(false);
        let mut state = self.lock();
        state.offered = true;
        let awaited = state.idle > 0;
        drop(state);
        if awaited {
            self.wake.notify_one();
        } else {
            aside(|| self.follow_for(IDLE));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// What a thread of the test is told to do.
    enum Order {
        Receive,
        Wait,
    }

    struct Scene {
        lead: &'static Lead,
        told: mpsc::Receiver<thread::ThreadId>,
        order: mpsc::Sender<Order>,
        done: mpsc::Sender<()>,
    }

    /// Starts a lead with threads that report their id whenever they could receive.
    fn start() -> Scene {
        let (tell, told) = mpsc::channel();
        let (order, orders) = mpsc::channel();
        let (done, waited) = mpsc::channel();
        let (orders, waited) = (Mutex::new(orders), Mutex::new(waited));
        let lead: &'static Lead = Box::leak(Box::new(Lead::new(move || {
            while is_here() {
                tell.send(thread::current().id()).unwrap();
                let order = orders.lock().unwrap().recv().unwrap();
                if matches!(order, Order::Wait) {
                    may_take_long();
                    assert!(!is_here());
                    waited.lock().unwrap().recv().unwrap();
                }
            }
        })));
        aside(|| lead.follow());
        Scene { lead, told, order, done }
    }

    #[test]
    fn a_thread_that_need_not_wait_keeps_it() {
        let Scene { told, order, .. } = start();
        let first = told.recv().unwrap();
        for _ in 0..10 {
            order.send(Order::Receive).unwrap();
            assert_eq!(told.recv().unwrap(), first);
        }
    }

    #[test]
    fn it_is_passed_on_to_a_new_thread_and_then_to_one_that_waits() {
        let Scene { lead, told, order, done } = start();
        let first = told.recv().unwrap();
        order.send(Order::Wait).unwrap();
        let second = told.recv().unwrap();
        assert_ne!(first, second);
        done.send(()).unwrap();
        while lead.lock().idle == 0 {
            thread::yield_now();
        }
        order.send(Order::Wait).unwrap();
        assert_eq!(told.recv().unwrap(), first);
    }
}
