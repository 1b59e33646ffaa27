//! One disk, all disks, or the network: what others move there, and whether classes are held.

mod look;
mod others;
mod totals;

use discnice_units::{Moment, Nanos, Rate};
pub(super) use look::{Exact, Kind, Look, News};
pub use totals::{Moved, Work};

use crate::policy::occupancy;
use crate::policy::throttle::STALE;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::recent::Recent;

/// Bytes of a KiB.
const KIB: u64 = 1 << 10;
/// A microsecond, in nanoseconds.
const MICROSECOND: u64 = 1000;

//= rate-windows/3.1-global
/// One medium.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Medium {
    /// Zero while unused; a disk's number as the kernel has it, of the network that of a namespace.
    id: AtomicU64,
    /// When a process of that namespace last looked.
    visited: AtomicU64,
    inward: AtomicU64,
    outward: AtomicU64,
    /// Charges that the medium has not moved yet.
    inward_pool: AtomicU64,
    outward_pool: AtomicU64,
    /// One while classes are held here.
    throttled: AtomicU32,
    /// Sum of the weights of the classes that would be held here.
    weights: AtomicU32,
    /// Since when the state has been what it is.
    since: AtomicU64,
    /// For how long it has had something to do, in nanoseconds.
    busy: AtomicU64,
    /// For which part of the time it has lately, in thousandths.
    load: AtomicU32,
    /// What a piece of work takes besides its transfer, in microseconds, and one more; zero for none timed yet.
    overhead: AtomicU32,
    /// Requests that it has done, and for how long these waited, in nanoseconds.
    requests: AtomicU64,
    waited: AtomicU64,
    others: Recent,
    /// Until when tasks that wait are passed over, and for how long they were last.
    doubted_until: AtomicU64,
    doubt: AtomicU64,
    /// One while classes are held for such tasks alone.
    suspected: AtomicU32,
    /// The rate of its transfer, in KiB per second; zero while that is not known.
    transfer: AtomicU32,
    /// For how long others' requests waited, in microseconds.
    waiting: Recent,
}

impl Medium {
    /// Number of the medium that stands for all disks together.
    pub const ID_OF_ALL_DISKS: u64 = u64::MAX;

    /// Its number; zero while unused.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Takes an unused place; returns whether it now is this medium's.
    pub(super) fn claim(&self, id: u64) -> bool {
        let claimed = self.id.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed);
        claimed.map_or_else(|owner| owner == id, |_| true)
    }

    /// Returns true if the others are busy here.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.throttled.load(Ordering::Relaxed) != 0
    }

    /// Sum of the weights of the classes that share what is left here.
    #[must_use]
    pub fn weights(&self) -> u32 {
        self.weights.load(Ordering::Relaxed)
    }

    /// Notes the sum of the weights of the classes that share what is left here.
    pub(super) fn set_weights(&self, weights: u32) {
        self.weights.store(weights, Ordering::Relaxed);
    }

    /// For which part of the time it has had something to do lately, in thousandths.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.load.load(Ordering::Relaxed)
    }

    /// What a piece of work takes besides its transfer, if one was timed.
    #[must_use]
    pub fn overhead(&self) -> Option<Nanos> {
        let micros = self.overhead.load(Ordering::Relaxed).checked_sub(1);
        micros.map(|micros| Nanos(u64::from(micros) * MICROSECOND))
    }

    /// Notes how long a piece of work took.
    pub(crate) fn note_piece(&self, took: Nanos, bytes: u64) {
        let transfer = self.transfer().unwrap_or(occupancy::TRANSFER);
        let micros = occupancy::overhead(self.overhead(), took, bytes, transfer).0 / MICROSECOND;
        self.overhead
            .store(u32::try_from(micros).map_or(u32::MAX, |micros| micros + 1), Ordering::Relaxed);
    }

    /// The rate of its transfer, if it was seen at work on large requests.
    #[must_use]
    pub fn transfer(&self) -> Option<Rate> {
        let known = self.transfer.load(Ordering::Relaxed);
        (known > 0).then(|| Rate::per_second(u64::from(known) * KIB))
    }

    /// Enters what it has had to do in all, `moved` of it new; returns how many requests are new, and for how long they waited.
    pub(super) fn enter_work(&self, all: &Work, moved: Moved, gap: Nanos) -> (u64, Nanos) {
        let before = Nanos(self.busy.swap(all.busy.0, Ordering::Relaxed));
        let busy = all.busy.minus(before);
        self.load.store(occupancy::load(self.load(), busy, gap), Ordering::Relaxed);
        let requests = self.requests.swap(all.requests, Ordering::Relaxed);
        let requests = all.requests.saturating_sub(requests);
        if let Some(rate) = occupancy::transfer(self.transfer(), moved.sum(), requests, busy) {
            let known = u32::try_from(rate.get() / KIB).unwrap_or(u32::MAX);
            self.transfer.store(known.max(1), Ordering::Relaxed);
        }
        let waited = Nanos(self.waited.swap(all.waited.0, Ordering::Relaxed));
        (requests, all.waited.minus(waited))
    }

    /// What the others moved lately.
    #[must_use]
    pub fn others(&self) -> &Recent {
        &self.others
    }

    /// Enters what the medium has moved in all; returns what of it is new, unless it is the first
    /// time.
    pub(super) fn enter(&self, all: Moved) -> Option<Moved> {
        let before = Moved {
            inward: self.inward.swap(all.inward, Ordering::Relaxed),
            outward: self.outward.swap(all.outward, Ordering::Relaxed),
        };
        (before != Moved::default()).then(|| all.since(before))
    }

    /// Returns true if this stands for the network of a namespace. It changes over to the given
    /// namespace if no process of another one has looked at its interfaces for [`STALE`]; totals of
    /// two would be taken for traffic.
    pub(super) fn is_of(&self, namespace: u64, now: Moment) -> bool {
        if self.id() != namespace {
            if now.since(Moment(self.visited.load(Ordering::Relaxed))) < STALE {
                return false;
            }
            self.id.store(namespace, Ordering::Relaxed);
            self.inward.store(0, Ordering::Relaxed);
            self.outward.store(0, Ordering::Relaxed);
            self.start_anew();
        }
        self.visited.store(now.0, Ordering::Relaxed);
        true
    }

    /// Forgets earlier charges, because the last look is too long ago.
    pub(super) fn start_anew(&self) {
        self.inward_pool.store(0, Ordering::Relaxed);
        self.outward_pool.store(0, Ordering::Relaxed);
    }
}
