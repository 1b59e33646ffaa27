//! One disk, all disks, or the network: what others move there, and whether classes are held.

use discnice_units::Nanos;

use crate::policy::occupancy;
use crate::policy::throttle::{self, ATTACK, RELEASE, STALE, Seen, Thresholds, Waits};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::recent::{Recent, SLOT};

/// Limits on how charges explain what a kind of medium moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Bytes coming in that were charged and are still on their way, at most.
    inward_most: u64,
    /// Bytes going out that were charged and are still on their way, at most.
    outward_most: u64,
    /// Half-life of charges that the medium never moves.
    half_life: Nanos,
}

impl Kind {
    /// No device has more reads in flight; written data waits for write-back, and may be deleted
    /// before that.
    pub(super) const DISK: Self = Self {
        inward_most: 64 << 20,
        outward_most: 4 << 30,
        half_life: Nanos(30 * Nanos::SECOND.0),
    };
    //= rate-windows/5.1-checkpoint
    /// What waits in the buffers of sockets (tcp(7), tcp_wmem). As long as they stay full nothing of it moves
    /// that is not charged anew; it must not hide the others for long.
    pub(super) const NETWORK: Self =
        Self { inward_most: 8 << 20, outward_most: 8 << 20, half_life: Nanos(2 * Nanos::SECOND.0) };

    /// What a pool of charges does not explain of `moved` bytes.
    fn explain(&self, pool: &AtomicU64, most: u64, own: u64, moved: u64, gap: Nanos) -> u64 {
        let before = throttle::decayed(pool.load(Ordering::Relaxed), gap, self.half_life);
        let (unexplained, rest) = throttle::explain(before, own, moved, most);
        pool.store(rest, Ordering::Relaxed);
        unexplained
    }
}

/// What a disk had to do since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// For how long it had something to do.
    pub busy: Nanos,
    /// Requests that it has done.
    pub requests: u64,
    /// For how long these waited and were served, all together.
    pub waited: Nanos,
    /// Requests that it has to do now.
    pub in_flight: u64,
}

impl Work {
    /// Returns the work of two disks together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            busy: self.busy.plus(other.busy),
            requests: self.requests.saturating_add(other.requests),
            waited: self.waited.plus(other.waited),
            in_flight: self.in_flight.saturating_add(other.in_flight),
        }
    }
}

/// The largest request that the kernel makes of ordinary reads (`max_sectors_kb`).
const REQUEST: u64 = 1280 << 10;
/// Divisor of what others seem to have written that gives the share taken for what a file system
/// writes for us: an eighth at most.
const OVERHEAD: u64 = 8;

/// How an observation was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) now: Nanos,
    /// The time since the last one.
    pub(super) gap: Nanos,
    /// What is known where it is known what all members have moved.
    pub(super) exact: Option<Exact>,
    /// Tasks of no class that wait for a disk and have files on this one.
    pub(super) waiting: u64,
}

/// See [`Look::exact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    /// Bytes that members have caused while the disks were asked.
    pub(super) late: Moved,
    /// Bytes of the page cache that were to be written before.
    pub(super) unwritten: u64,
    /// Tasks of no class that wait for some disk.
    pub(super) strangers: u64,
}

/// First and longest time for which waiting tasks are disregarded if no requests of theirs are seen
/// while classes are held on their account; the time doubles each time. (The kernel does not tell
/// which disk a task waits for.)
const DOUBT: (Nanos, Nanos) = (Nanos::SECOND, Nanos(10 * Nanos::SECOND.0));

/// In nanoseconds.
const MICROSECOND: u64 = 1000;

/// Bytes that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Read, or received.
    pub inward: u64,
    /// Written, or sent.
    pub outward: u64,
}

impl Moved {
    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            inward: self.inward.saturating_add(other.inward),
            outward: self.outward.saturating_add(other.outward),
        }
    }

    /// What this has more than `before`: nothing where the total went down, as one does that starts
    /// anew, or that leaves out what is only estimated.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            inward: risen(self.inward, before.inward),
            outward: risen(self.outward, before.outward),
        }
    }

    /// Returns the sum of both directions.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.inward.saturating_add(self.outward)
    }

    /// The part of this that `part` is of `whole`.
    pub(super) fn part(self, part: u64, whole: u64) -> Self {
        if part >= whole {
            return self;
        }
        let scale = |bytes: u64| (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64;
        Self { inward: scale(self.inward), outward: scale(self.outward) }
    }
}

/// By how much a total has risen that may have gone below zero.
const fn risen(all: u64, before: u64) -> u64 {
    let more = all.wrapping_sub(before).cast_signed();
    if more < 0 { 0 } else { more.cast_unsigned() }
}

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
        let micros = occupancy::overhead(self.overhead(), took, bytes).0 / MICROSECOND;
        self.overhead
            .store(u32::try_from(micros).map_or(u32::MAX, |micros| micros + 1), Ordering::Relaxed);
    }

    /// Enters what it has had to do in all; returns how many requests are new, and for how long they waited.
    pub(super) fn enter_work(&self, all: &Work, gap: Nanos) -> (u64, Nanos) {
        let before = Nanos(self.busy.swap(all.busy.0, Ordering::Relaxed));
        let load = occupancy::load(self.load(), all.busy.minus(before), gap);
        self.load.store(load, Ordering::Relaxed);
        let requests = self.requests.swap(all.requests, Ordering::Relaxed);
        let waited = Nanos(self.waited.swap(all.waited.0, Ordering::Relaxed));
        (all.requests.saturating_sub(requests), all.waited.minus(waited))
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
    pub(super) fn is_of(&self, namespace: u64, now: Nanos) -> bool {
        if self.id() != namespace {
            if now.minus(Nanos(self.visited.load(Ordering::Relaxed))) < STALE {
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

    /// Takes in one observation: `moved` bytes, of which `own` were charged.
    pub(super) fn observe(
        &self,
        look: &Look,
        kind: &Kind,
        (moved, own): (Moved, Moved),
        weights: u32,
        (work, done): (&Work, (u64, Nanos)),
        (thresholds, stalled): (&Thresholds, bool),
    ) {
        let (now, gap) = (look.now, look.gap);
        self.weights.store(weights, Ordering::Relaxed);
        let in_hand = |late: u64| work.in_flight.saturating_mul(REQUEST).saturating_add(late);
        let most = |known: Option<u64>, most: u64| known.map_or(most, |known| known.min(most));
        let known = look.exact.map(|exact| in_hand(exact.late.inward));
        let most_inward = most(known, kind.inward_most);
        let pool = &self.inward_pool;
        // What is on its way is known; nothing of it is to be forgotten.
        let passed = if look.exact.is_some() { Nanos(0) } else { gap };
        let inward = kind.explain(pool, most_inward, own.inward, moved.inward, passed);
        let unwritten = |exact: Exact| exact.unwritten.saturating_add(in_hand(exact.late.outward));
        let most_outward = most(look.exact.map(unwritten), kind.outward_most);
        let pool = &self.outward_pool;
        let outward = kind.explain(pool, most_outward, own.outward, moved.outward, gap);
        note(&self.others, now, gap, inward.saturating_add(outward));
        let was = self.is_throttled();
        let (mut suspected, mut waits) = (false, None);
        if let Some(exact) = &look.exact {
            let foreign = inward.saturating_add(outward.saturating_sub(moved.outward / OVERHEAD));
            let span = gap.min(SLOT).0 / MICROSECOND;
            let mut waited = waiting(foreign, moved.sum(), done);
            if work.in_flight > 0 {
                waited = waited.max(look.waiting.saturating_mul(span));
            }
            if waited > 0 {
                self.suspected.store(0, Ordering::Relaxed);
            } else if !was && work.in_flight > 0 && self.believes(now) {
                waited = exact.strangers.saturating_mul(span);
                suspected = waited > 0;
            }
            note(&self.waiting, now, gap, waited);
            let seen = self.waits(now);
            // What was seen before does not matter any more if nothing is now.
            let attack = if waited > 0 { seen.attack } else { Nanos(0) };
            waits = Some(Waits { attack, ..seen });
        }
        let seen = Seen { waits, ..self.seen(now, stalled) };
        let is = throttle::is_throttled(was, thresholds, &seen);
        if is != was {
            self.note_suspicion(now, is, suspected);
            self.since.store(now.0, Ordering::Relaxed);
            self.throttled.store(is.into(), Ordering::Release);
        }
    }

    /// Returns true if waiting tasks are believed to wait for this disk.
    fn believes(&self, now: Nanos) -> bool {
        now.0 >= self.doubted_until.load(Ordering::Relaxed)
    }

    /// Classes are held from now on, maybe only as tasks wait; or they are free again, and none of those tasks' requests was seen.
    fn note_suspicion(&self, now: Nanos, held: bool, suspected: bool) {
        if held {
            self.suspected.store(suspected.into(), Ordering::Relaxed);
            return;
        }
        let wrong = self.suspected.swap(0, Ordering::Relaxed) != 0;
        let doubt = if wrong {
            let before = self.doubt.load(Ordering::Relaxed).saturating_mul(2);
            before.clamp(DOUBT.0.0, DOUBT.1.0)
        } else {
            0
        };
        self.doubt.store(doubt, Ordering::Relaxed);
        self.doubted_until.store(now.0.saturating_add(doubt), Ordering::Relaxed);
    }

    /// The others' waiting of late.
    fn waits(&self, now: Nanos) -> Waits {
        let lately = |back: u64| now.minus(Nanos(back * SLOT.0));
        let (spans, all) = (ATTACK.0 / SLOT.0, RELEASE.0 / SLOT.0);
        let any = |back: &u64| self.waiting.until(lately(*back), 1) > 0;
        Waits {
            attack: Nanos(self.waiting.until(now, spans) * MICROSECOND),
            spans: (0..all).filter(any).count() as u64,
            quiet: Nanos((0..all).find(any).unwrap_or(all) * SLOT.0),
        }
    }

    fn seen(&self, now: Nanos, stalled: bool) -> Seen {
        let attack = self.others.until(now, ATTACK.0 / SLOT.0);
        let largest = self.others.largest(now, ATTACK.0 / SLOT.0);
        let since = Nanos(self.since.load(Ordering::Relaxed));
        Seen {
            attack,
            // A burst may fall on the border of two slots, with a little around it.
            lasting: attack - largest.min(attack) > attack / 8,
            release: self.others.until(now, RELEASE.0 / SLOT.0),
            stalled,
            since: now.minus(since),
            waits: None,
        }
    }
}

/// Enters what of the others was seen in the time `gap` before now.
fn note(recent: &Recent, now: Nanos, gap: Nanos, units: u64) {
    let each = throttle::spread(units, gap, SLOT);
    if each == 0 {
        return;
    }
    let slots = (gap.0 / SLOT.0).clamp(1, RELEASE.0 / SLOT.0);
    for back in 0..slots {
        recent.add(now.minus(Nanos(back * SLOT.0)), each);
    }
}

/// For how long requests of others waited, in microseconds, if `foreign` of the bytes that were moved are theirs: at least one did then.
fn waiting(foreign: u64, moved: u64, (requests, waited): (u64, Nanos)) -> u64 {
    if foreign == 0 || requests == 0 {
        return 0;
    }
    let each = waited.0 / requests;
    let theirs = u128::from(requests) * u128::from(foreign.min(moved));
    let theirs = theirs.div_ceil(u128::from(moved.max(1))) as u64;
    (each.saturating_mul(theirs) / MICROSECOND).max(1)
}
