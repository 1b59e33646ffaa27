//! The supervisor: receives calls, and answers each when its turn has come.
//!
//! Calls that cost the disk nothing, as far as known, are answered without a look at anything. The others the
//! [`Regulator`](discnice_regulator::Regulator) admits that also works inside programs. The thread that
//! receives serves both; if it has to wait then another receives meanwhile ([`Lead`]), so calls are answered
//! out of order.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use discnice_ledger::{Board, Class};
use discnice_regulator::Thread;
use discnice_sys::seccomp::{self, Notification};
use discnice_sys::{procfs, time};
use discnice_units::{Moment, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::caller::Caller;
use crate::calls::{self, Kind};
use crate::closed::{self, Finisher};
use crate::descriptor::Descriptor;
use crate::host::{Accounted, Target};
use crate::lead::{self, Lead};
use crate::place::Places;
use crate::process::Process;
use crate::table::{SLOTS, Table};
use crate::{interrupt, pair, proc};

/// The slot in which calls are received that are answered at once.
const FIRST: usize = 0;
/// Interval at which killed threads are looked for, while calls come.
const SWEEP: Nanos = Nanos::SECOND;
/// Calls that are received without a look at anything else.
const STREAK: u32 = 64;
/// Threads that are remembered, each with a descriptor of its account.
const CALLERS: usize = 16_384;

/// What both processes of a pair need.
#[derive(Debug)]
pub struct Shared {
    /// Descriptor that notifications are received from.
    pub listener: OwnedFd,
    /// The class with the budget that is spent.
    pub class: &'static Class,
    /// Board that tells if others are busy.
    pub board: Option<&'static Board>,
    /// Calls that wait.
    pub table: Table,
}

/// What the receiving thread has to look after besides.
#[derive(Debug)]
struct Watch {
    /// The connection to the process that would take over.
    peer: Option<OwnedFd>,
    /// When killed threads were last looked for.
    swept: Moment,
    /// Calls came since.
    busy: bool,
}

/// The supervisor of all threads below one filter.
pub struct Supervisor {
    shared: &'static Shared,
    /// Threads that make no call at the moment.
    callers: Mutex<HashMap<u32, Caller>>,
    processes: Mutex<HashMap<u32, Arc<Process>>>,
    free: Mutex<Vec<usize>>,
    finisher: Finisher,
    places: Places,
    /// State of the receiving thread.
    watch: Mutex<Watch>,
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
        finisher: Finisher::default(),
        places: Places::default(),
        watch: Mutex::new(Watch { peer, swept: time::now(), busy: false }),
    }));
    // On an older kernel an answer takes longer to arrive.
    let _ = seccomp::take_turns(supervisor.listener());
    supervisor.take_over();
    let lead: &'static Lead = Box::leak(Box::new(Lead::new(|| supervisor.receive_all())));
    lead.follow()
}

impl Supervisor {
    fn listener(&self) -> i32 {
        self.shared.listener.as_raw_fd()
    }

    /// Serves what a predecessor had received: calls that wait, or were being answered.
    fn take_over(&'static self) {
        for slot in FIRST..SLOTS {
            let Some(call) = self.shared.table.get(slot) else { continue };
            if slot == FIRST {
                self.shared.table.answer(self.listener(), slot, call.id);
                continue;
            }
            lock(&self.free).retain(|free| *free != slot);
            if !lead::aside(move || self.serve(slot, call)) {
                self.release(slot, call.id);
            }
        }
    }

    /// Receives until another thread does; ends the process when no thread is left to supervise.
    fn receive_all(&'static self) {
        while lead::is_here() {
            let mut watch = lock(&self.watch);
            let Some((called, alone)) = self.wait(watch.peer.as_ref()) else {
                self.finisher.await_all();
                pair::end()
            };
            if alone || watch.peer.is_none() {
                watch.peer = pair::start(self.shared).ok();
            }
            let now = time::now();
            if called && !watch.busy {
                watch.busy = true;
                interrupt::every_second(true);
            } else if watch.busy && now.since(watch.swept) >= SWEEP {
                self.sweep();
                (watch.swept, watch.busy) = (now, called);
                interrupt::every_second(called);
            }
            drop(watch);
            if called {
                self.receive_some();
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

    /// Waits for a call or the peer's end: tells which came; `None` when no thread is left to
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

    /// Receives one call; false when there was none, or when another thread receives the next.
    fn receive(&'static self) -> bool {
        let Ok(call) = self.shared.table.receive(self.listener(), FIRST) else { return false };
        let request = calls::decode(&call.call);
        let mut callers = lock(&self.callers);
        if let Some(caller) = callers.get_mut(&call.thread)
            && caller.let_pass(self.shared.class, &request)
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
                self.serve(slot, call);
            }
            // Thousands are held: rather one too fast than one that waits for all of them.
            None => self.shared.table.answer(self.listener(), FIRST, call.id),
        }
        lead::is_here()
    }

    /// Answers a call when its turn has come.
    fn serve(&'static self, slot: usize, call: Notification) {
        let known = lock(&self.callers).remove(&call.thread).filter(|caller| !caller.is_gone());
        if let Some(mut caller) = known.or_else(|| self.meet(call.thread)) {
            let request = calls::decode(&call.call);
            caller.admit(self.shared.class, &request, (self.listener(), call.id));
            match request.kind {
                Kind::Exit => self.dismiss(&caller),
                Kind::End => {}
                _ => {
                    caller.is_answered();
                    // Before the answer: then the thread may make its next call.
                    lock(&self.callers).insert(call.thread, caller);
                }
            }
        }
        self.release(slot, call.id);
    }

    /// A thread that is not known.
    fn meet(&'static self, thread: u32) -> Option<Caller> {
        let id = proc::process_of(thread)?;
        let mut processes = lock(&self.processes);
        let Shared { class, board, .. } = *self.shared;
        let enlist = || Arc::new(Process::enlist(class, board, id));
        let process = processes.entry(id).or_insert_with(enlist);
        Some(Caller::new(Arc::clone(process), thread, &self.finisher, &self.places))
    }

    fn release(&self, slot: usize, id: u64) {
        self.shared.table.answer(self.listener(), slot, id);
        lock(&self.free).push(slot);
    }

    /// The process of a thread ends: settles what its other threads did last.
    fn dismiss(&self, last: &Caller) {
        let mut callers = lock(&self.callers);
        let others = callers.extract_if(|_, caller| caller.process.id == last.process.id);
        let others: Vec<Caller> = others.map(|(_, caller)| caller).collect();
        drop(callers);
        others.into_iter().for_each(|mut caller| caller.settle(self.shared.class, None));
        last.process.leave();
        lock(&self.processes).remove(&last.process.id);
    }

    /// Forgets threads that were killed, and processes without any; sees to what was closed.
    fn sweep(&'static self) {
        // To look at what executes a program would wait until it has closed its files.
        let executing: HashSet<u32> =
            lock(&self.processes).keys().copied().filter(|id| procfs::is_executing(*id)).collect();
        let mut callers = lock(&self.callers);
        let crowded = callers.len() > CALLERS;
        callers.retain(|_, caller| {
            let gone = !executing.contains(&caller.process.id) && caller.is_gone();
            if gone {
                caller.bury(self.shared.class);
            }
            !gone && !crowded
        });
        drop(callers);
        let mut all = Vec::new();
        lock(&self.processes).retain(|_, process| {
            let used = Arc::strong_count(process) > 1;
            let has_ended = !used && !discnice_sys::process::exists(process.id);
            all.push((Arc::clone(process), has_ended));
            used
        });
        for (process, has_ended) in all.into_iter().filter(|(one, _)| !executing.contains(&one.id))
        {
            for closed in process.take_closed(has_ended) {
                self.finish(&process, closed);
            }
            if has_ended {
                process.leave();
            }
        }
    }

    /// Leaves a file that no thread is known to have closed to the thread that finishes those.
    fn finish(&'static self, process: &Arc<Process>, descriptor: Arc<Descriptor>) {
        let (class, held) = (self.shared.class, Cell::new(0));
        let accounted = Accounted::default();
        let target = Target::new(process, process.id, &accounted, &held);
        let closed_by = (&target.regulator(class), &Thread::default());
        // Not done here: this thread keeps others from receiving calls, perhaps of the file system's daemon.
        if let Some(work) = closed::left(class, process, closed_by, descriptor) {
            self.finisher.enqueue(work);
        }
    }
}

impl Shared {
    /// Returns true if no thread is below the filter any more.
    pub fn is_over(&self) -> bool {
        let mut watched = [PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().contains(PollFlags::HUP)
    }
}
