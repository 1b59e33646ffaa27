//! The supervisor: receives calls, and answers each when its turn has come.
//!
//! Calls that cost the disk nothing, as far as known, are answered at once by the thread that
//! receives. The others go to a [`Pool`], where the [`Regulator`](discnice_regulator::Regulator)
//! that also works inside programs admits them; so they are answered out of order.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use discnice_budget::Class;
use discnice_sys::seccomp::{self, Notification};
use discnice_sys::time;
use discnice_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::caller::Caller;
use crate::calls::{self, Kind};
use crate::pair;
use crate::pool::Pool;
use crate::proc;
use crate::process::Process;
use crate::table::{SLOTS, Table};

/// The slot in which calls are received that are answered at once.
const FIRST: usize = 0;
/// How often those who were killed are looked for, while calls come.
const SWEEP: Nanos = Nanos::SECOND;
/// Calls that are received without a look at anything else.
const STREAK: u32 = 64;
/// Threads that are remembered, each with a descriptor of its account.
const CALLERS: usize = 16_384;

/// What both processes of a pair need.
#[derive(Debug)]
pub struct Shared {
    /// Where notifications are received.
    pub listener: OwnedFd,
    /// The class whose budget is spent.
    pub class: &'static Class,
    /// Calls that wait.
    pub table: Table,
}

/// A call to be served by the pool.
struct Job {
    supervisor: &'static Supervisor,
    slot: usize,
    call: Notification,
    caller: Caller,
}

/// The supervisor of all threads below one filter.
pub struct Supervisor {
    shared: &'static Shared,
    /// Threads that make no call at the moment.
    callers: Mutex<HashMap<u32, Caller>>,
    processes: Mutex<HashMap<u32, Arc<Process>>>,
    free: Mutex<Vec<usize>>,
    pool: Pool<Job>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until the last thread below the filter is gone; `peer` is the connection to the process
/// that would take over.
pub fn run(shared: &'static Shared, peer: Option<OwnedFd>) -> ! {
    let supervisor: &'static Supervisor = Box::leak(Box::new(Supervisor {
        shared,
        callers: Mutex::default(),
        processes: Mutex::default(),
        free: Mutex::new((FIRST + 1..SLOTS).rev().collect()),
        pool: Pool::new(serve),
    }));
    // On an older kernel an answer takes longer to arrive.
    let _ = seccomp::take_turns(supervisor.listener());
    supervisor.take_over();
    supervisor.receive_all(peer);
    pair::end()
}

impl Supervisor {
    fn listener(&self) -> i32 {
        self.shared.listener.as_raw_fd()
    }

    /// Serves what a predecessor had received: calls that wait, or were being answered.
    fn take_over(&'static self) {
        for slot in FIRST..SLOTS {
            let Some(call) = self.shared.table.get(slot) else { continue };
            match slot {
                FIRST => self.shared.table.answer(self.listener(), slot, call.id),
                _ => {
                    lock(&self.free).retain(|free| *free != slot);
                    self.serve_later(slot, call);
                }
            }
        }
    }

    fn receive_all(&'static self, mut peer: Option<OwnedFd>) {
        let mut swept = time::now();
        let mut busy = false;
        loop {
            let Some((called, alone)) = self.wait(peer.as_ref()) else { return };
            if alone || peer.is_none() {
                peer = pair::start(self.shared).ok();
            }
            if called {
                if !busy {
                    pair::interrupt_every_second(true);
                }
                busy = true;
                self.receive_some();
            }
            let now = time::now();
            if busy && now.minus(swept) >= SWEEP {
                self.sweep();
                (swept, busy) = (now, called);
                pair::interrupt_every_second(busy);
            }
        }
    }

    /// Receives a call that is there, and those that follow at once: to look first whether there is
    /// one would cost a tenth more. The peer's end interrupts the wait for the next.
    fn receive_some(&'static self) {
        for _ in 0..STREAK {
            if !self.receive() {
                return;
            }
        }
    }

    /// Waits for a call or the peer's end: tells which came; `None` when nobody is left to
    /// supervise.
    fn wait(&self, peer: Option<&OwnedFd>) -> Option<(bool, bool)> {
        let listener = &self.shared.listener;
        let (call, end) = (PollFlags::IN, PollFlags::empty());
        let mut watched = [PollFd::new(listener, call), PollFd::new(peer.unwrap_or(listener), end)];
        // An interrupted wait is repeated by the caller.
        let _ = poll(&mut watched, None);
        let events = watched[0].revents();
        if events.contains(PollFlags::HUP) && !events.contains(PollFlags::IN) {
            return None;
        }
        let alone = peer.is_some() && watched[1].revents().contains(PollFlags::HUP);
        Some((events.contains(PollFlags::IN), alone))
    }

    /// Receives one call; false when there was none, or when none is likely to follow at once.
    fn receive(&'static self) -> bool {
        let Ok(call) = self.shared.table.receive(self.listener(), FIRST) else { return false };
        let request = calls::decode(&call.call);
        let mut callers = lock(&self.callers);
        if let Some(caller) = callers.get_mut(&call.thread)
            && caller.passes(self.shared.class, &request)
        {
            caller.is_answered();
            self.shared.table.answer(self.listener(), FIRST, call.id);
            return true;
        }
        drop(callers);
        let free = lock(&self.free).pop();
        match free {
            Some(slot) => {
                self.shared.table.put(slot, FIRST);
                self.serve_later(slot, call);
            }
            // Thousands are held: rather one too fast than one that waits for all of them.
            None => self.shared.table.answer(self.listener(), FIRST, call.id),
        }
        false
    }

    fn serve_later(&'static self, slot: usize, call: Notification) {
        let known = lock(&self.callers).remove(&call.thread).filter(|caller| !caller.is_gone());
        match known.or_else(|| self.meet(call.thread)) {
            Some(caller) => self.pool.submit(Job { supervisor: self, slot, call, caller }),
            None => self.release(slot, call.id),
        }
    }

    /// A thread that is not known.
    fn meet(&self, thread: u32) -> Option<Caller> {
        let id = proc::process_of(thread)?;
        let mut processes = lock(&self.processes);
        let process =
            processes.entry(id).or_insert_with(|| Arc::new(Process::enlist(self.shared.class, id)));
        Some(Caller::new(Arc::clone(process), thread))
    }

    fn release(&self, slot: usize, id: u64) {
        self.shared.table.answer(self.listener(), slot, id);
        lock(&self.free).push(slot);
    }

    /// The process of a thread ends: settles what its other threads did last.
    fn dismiss(&self, last: &Caller) {
        let mut callers = lock(&self.callers);
        let others = callers.extract_if(|_, caller| caller.process.id == last.process.id);
        others.for_each(|(_, mut caller)| caller.settle(self.shared.class, None));
        drop(callers);
        last.process.leave();
        lock(&self.processes).remove(&last.process.id);
    }

    /// Forgets threads that were killed, and processes without any.
    fn sweep(&self) {
        let mut callers = lock(&self.callers);
        let crowded = callers.len() > CALLERS;
        callers.retain(|_, caller| {
            let gone = caller.is_gone();
            if gone {
                caller.bury(self.shared.class);
            }
            !gone && !crowded
        });
        drop(callers);
        let mut processes = lock(&self.processes);
        processes.retain(|_, process| {
            let used = Arc::strong_count(process) > 1;
            if !used && !discnice_sys::process::exists(process.id) {
                process.leave();
            }
            used
        });
    }
}

/// What a thread of the pool does.
fn serve(job: Job) {
    let Job { supervisor, slot, call, mut caller } = job;
    let request = calls::decode(&call.call);
    let waiting = (supervisor.listener(), call.id);
    caller.admit(supervisor.shared.class, &request, waiting);
    match request.kind {
        Kind::Exit => supervisor.dismiss(&caller),
        Kind::End => {}
        _ => {
            caller.is_answered();
            // Before the answer: then the thread may make its next call.
            lock(&supervisor.callers).insert(call.thread, caller);
        }
    }
    supervisor.release(slot, call.id);
}

impl Shared {
    /// Whether nobody is below the filter any more.
    pub fn is_over(&self) -> bool {
        let mut watched = [PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().contains(PollFlags::HUP)
    }
}
