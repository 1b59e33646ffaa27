//! One thread's seat at the shared table.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use discnice_units::{Moment, Nanos};
use rustix::thread::futex;
use rustix::time::Timespec;

use super::layout::{AWAY, Entry, RUNNING, SEATS, WAITING, store};
use super::map::{Locked, Map};
use super::process::{can_tell, is_same, start_time};
use crate::model::superintendent::{
    DeclaredResources, State, Thread, next_to_run, usage_at_entry, usage_decay,
};
use crate::testpoint::clock;
use crate::testpoint::watch::Usage;

/// How long a waiter sleeps before it looks for itself: a granted turn shows at once by a wake-up,
/// a dead process or a lost wake-up after this.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The waiters together look this often.
const LOOK_EVERY: Nanos = Nanos(LOOK.tv_nsec as u64);

/// A seat; given back on drop, or cleared by others when the process dies.
pub struct Seat {
    map: Map,
    number: usize,
    pid: u32,
    hung: Nanos,
}

impl Seat {
    /// Takes a free seat in the table to which `file` leads. A thread that keeps its turn for longer than `hung`
    /// is passed over.
    ///
    /// # Errors
    /// As the file system's; `WouldBlock` where all seats are taken or the lock is.
    pub fn take(
        file: File,
        weight: f64,
        resources: DeclaredResources,
        hung: Nanos,
    ) -> io::Result<Self> {
        let map = Map::open(file)?;
        let pid = std::process::id();
        let number = {
            let lock = map.lock().ok_or(io::ErrorKind::WouldBlock)?;
            clear_the_dead(&map, |_| true);
            let free = free_seat(&map).ok_or(io::ErrorKind::WouldBlock)?;
            let entry = &map.seats[free];
            entry.state.store(AWAY, Ordering::Relaxed);
            entry.started.store(start_time(pid).unwrap_or(0), Ordering::Relaxed);
            store(&entry.usage, 0.0);
            store(&entry.weight, weight);
            entry.resources.store(resources.0, Ordering::Relaxed);
            entry.pid.store(pid, Ordering::Release);
            map.high_water.fetch_max(free as u32 + 1, Ordering::AcqRel);
            drop(lock);
            free
        };
        Ok(Self { map, number, pid, hung })
    }

    /// Returns true if the seat belongs to this process; after fork(2), the child's copy does not.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Sets priority and resources from now on: what it used so far counts as much as before.
    pub fn declare(&self, weight: f64, resources: DeclaredResources) {
        let before = self.entry().read();
        store(&self.entry().usage, before.usage / before.weight * weight);
        store(&self.entry().weight, weight);
        self.entry().resources.store(resources.0, Ordering::Relaxed);
    }

    /// Adds `used` to what all polite jobs together used, and returns the sum: polite jobs are
    /// not the others that a polite job steps aside for.
    #[must_use]
    pub fn publish(&self, used: Usage) -> Usage {
        let add = |i: usize, amount: f64| {
            let amount = amount.max(0.0) as u64;
            self.map.polite[i].fetch_add(amount, Ordering::Relaxed).wrapping_add(amount) as f64
        };
        Usage {
            cpu: add(0, used.cpu * 1e9) / 1e9,
            read: add(1, used.read),
            written: add(2, used.written),
        }
    }

    //= ms-manners/4.5-one-at-a-time
    /// Gives up the turn, if held, and returns when it is this thread's turn again. `waiting`
    /// is called before each sleep of at most 50 ms: the place to stop a job that runs elsewhere, and
    /// to see that it does not stay stopped. It may end the wait; the thread then runs out of turn.
    pub fn turn(&self, mut waiting: impl FnMut() -> ControlFlow<()>) {
        let now = clock::now();
        let ran_since = Moment(self.entry().since.load(Ordering::Relaxed));
        if self.alone() && self.running() {
            self.charge(now.since(ran_since));
            self.entry().since.store(now.0, Ordering::Relaxed);
            return;
        }
        match self.map.lock() {
            Some(lock) => {
                if self.entry().state.load(Ordering::Acquire) == AWAY {
                    let usage = usage_at_entry(&threads(&self.map), &self.entry().read());
                    store(&self.entry().usage, usage);
                }
                self.leave(now, WAITING);
                self.decide(&lock);
            }
            // The table is of no use now; the job is worth more than the order.
            None => return,
        }
        while !self.running() {
            if waiting().is_break() {
                return self.away();
            }
            let _ = futex::wait(&self.entry().state, futex::Flags::empty(), WAITING, Some(&LOOK));
            // Another process may have taken this one for dead and cleared its seat.
            if self.entry().pid.load(Ordering::Acquire) != self.pid {
                return;
            }
            if self.running() || !self.look_is_due() {
                continue;
            }
            let Some(lock) = self.map.lock() else { return };
            // A dead waiter does no harm before it gets a turn.
            clear_the_dead(&self.map, |entry| entry.state.load(Ordering::Acquire) == RUNNING);
            self.decide(&lock);
        }
    }

    /// Gives up the turn, for a suspension.
    pub fn away(&self) {
        if self.alone() {
            self.leave(clock::now(), AWAY);
        } else if let Some(lock) = self.map.lock() {
            self.leave(clock::now(), AWAY);
            self.decide(&lock);
        }
    }

    fn entry(&self) -> &Entry {
        &self.map.seats[self.number]
    }

    fn running(&self) -> bool {
        self.entry().state.load(Ordering::Acquire) == RUNNING
    }

    /// Returns true if no other thread is there that could want a turn.
    #[must_use]
    pub fn alone(&self) -> bool {
        seats_in_use(&self.map).enumerate().all(|(i, entry)| {
            i == self.number
                || entry.pid.load(Ordering::Acquire) == 0
                || entry.state.load(Ordering::Acquire) == AWAY
        })
    }

    /// Returns true if this waiter is to look: one at a time suffices. If each of a hundred did,
    /// most would not get the lock in time.
    fn look_is_due(&self) -> bool {
        let (now, word) = (clock::now(), &self.map.looked_at);
        let last = word.load(Ordering::Relaxed);
        now.0.abs_diff(last) >= LOOK_EVERY.0
            && word.compare_exchange(last, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn charge(&self, ran: Nanos) {
        // A hung thread waited for something outside; that is no use of the machine.
        let seconds = ran.min(self.hung).as_secs_f64();
        let used = f64::from_bits(self.entry().usage.load(Ordering::Relaxed));
        store(&self.entry().usage, used + seconds);
    }

    fn leave(&self, now: Moment, state: u32) {
        if self.running() {
            self.charge(now.since(Moment(self.entry().since.load(Ordering::Relaxed))));
        }
        self.entry().since.store(now.0, Ordering::Relaxed);
        self.entry().state.store(state, Ordering::Release);
    }

    /// Grants turns to all waiting threads, until those that still wait must.
    fn decide(&self, _lock: &Locked<'_>) {
        let now = clock::now();
        self.decay(now);
        let mut threads = threads(&self.map);
        while let Some(next) = next_to_run(&threads, now, self.hung) {
            threads[next].state = State::Running(now);
            let entry = &self.map.seats[next];
            entry.since.store(now.0, Ordering::Relaxed);
            entry.state.store(RUNNING, Ordering::Release);
            if next != self.number {
                let _ = futex::wake(&entry.state, futex::Flags::empty(), 1);
            }
        }
    }

    fn decay(&self, now: Moment) {
        let last = Moment(self.map.decayed_at.swap(now.0, Ordering::Relaxed));
        let factor = usage_decay(now.since(last));
        for entry in seats_in_use(&self.map) {
            store(&entry.usage, entry.read().usage * factor);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The copy in a forked child must not give back its parent's seat.
        if !self.is_mine() {
            return;
        }
        self.away();
        self.entry().pid.store(0, Ordering::Release);
    }
}

fn seats_in_use(map: &Map) -> impl Iterator<Item = &Entry> {
    let count = map.high_water.load(Ordering::Acquire) as usize;
    map.seats.iter().take(count.min(SEATS))
}

fn threads(map: &Map) -> Vec<Thread> {
    seats_in_use(map).map(Entry::read).collect()
}

fn is_dead(entry: &Entry) -> bool {
    let pid = entry.pid.load(Ordering::Acquire);
    pid != 0 && !is_same(pid, entry.started.load(Ordering::Relaxed))
}

/// Frees the `suspected` seats of processes that are gone.
fn clear_the_dead(map: &Map, suspected: impl Fn(&Entry) -> bool) {
    if !can_tell() {
        return;
    }
    for entry in seats_in_use(map).filter(|entry| suspected(entry) && is_dead(entry)) {
        entry.pid.store(0, Ordering::Release);
    }
}

/// Returns a free seat.
fn free_seat(map: &Map) -> Option<usize> {
    map.seats.iter().position(|entry| entry.pid.load(Ordering::Acquire) == 0)
}
