//! One disk, all disks, or the network: what others move there, and whether classes are held.

use discnice_policy::occupancy;
use discnice_policy::throttle::{self, ATTACK, RELEASE, STALE, Seen, Thresholds};
use discnice_units::Nanos;

use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::recent::{Recent, SLOT};

/// How charges explain what a kind of medium moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Bytes coming in that were charged and are still on their way, at most.
    inward_most: u64,
    /// The same of bytes going out.
    outward_most: u64,
    /// Charges that the medium never moves are forgotten by halves.
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

    /// Both ways together.
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

/// One medium.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Medium {
    /// Zero while unused; a disk's number as the kernel has it, of the network that of a namespace.
    id: AtomicU64,
    /// When somebody of that namespace last looked.
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
    /// How long the last piece of work took that was timed, in microseconds; zero for none yet.
    piece: AtomicU32,
    others: Recent,
}

impl Medium {
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

    /// Whether the others are busy here.
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

    /// How long the last piece of work took that was timed, if one was.
    #[must_use]
    pub fn piece(&self) -> Option<Nanos> {
        let micros = self.piece.load(Ordering::Relaxed);
        (micros != 0).then(|| Nanos(u64::from(micros) * MICROSECOND))
    }

    /// Notes how long a piece of work took.
    pub(crate) fn set_piece(&self, took: Nanos) {
        let micros = u32::try_from(took.0 / MICROSECOND).unwrap_or(u32::MAX);
        self.piece.store(micros.max(1), Ordering::Relaxed);
    }

    /// Enters for how long it has had something to do in all.
    pub(super) fn enter_busy(&self, all: Nanos, gap: Nanos) {
        let before = Nanos(self.busy.swap(all.0, Ordering::Relaxed));
        let load = occupancy::load(self.load(), all.minus(before), gap);
        self.load.store(load, Ordering::Relaxed);
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

    /// Whether this stands for the network of a namespace, whose interfaces it then becomes if nobody
    /// of another one has looked at theirs for [`STALE`]: totals of two would be taken for traffic.
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

    /// Forgets what was charged before, because nobody looked for too long.
    pub(super) fn start_anew(&self) {
        self.inward_pool.store(0, Ordering::Relaxed);
        self.outward_pool.store(0, Ordering::Relaxed);
    }

    /// Takes in one observation: `moved` bytes, of which `own` were charged.
    pub(super) fn observe(
        &self,
        (now, gap): (Nanos, Nanos),
        kind: &Kind,
        (moved, own): (Moved, Moved),
        weights: u32,
        (thresholds, stalled): (&Thresholds, bool),
    ) {
        self.weights.store(weights, Ordering::Relaxed);
        let (pool, most) = (&self.inward_pool, kind.inward_most);
        let inward = kind.explain(pool, most, own.inward, moved.inward, gap);
        let (pool, most) = (&self.outward_pool, kind.outward_most);
        let outward = kind.explain(pool, most, own.outward, moved.outward, gap);
        self.note_others(now, gap, inward.saturating_add(outward));
        let seen = self.seen(now, stalled);
        let was = self.is_throttled();
        let is = throttle::is_throttled(was, thresholds, &seen);
        if is != was {
            self.since.store(now.0, Ordering::Relaxed);
            self.throttled.store(is.into(), Ordering::Release);
        }
    }

    /// Enters what the others moved in the time `gap` before now.
    fn note_others(&self, now: Nanos, gap: Nanos, bytes: u64) {
        let each = throttle::spread(bytes, gap, SLOT);
        if each == 0 {
            return;
        }
        let slots = (gap.0 / SLOT.0).clamp(1, RELEASE.0 / SLOT.0);
        for back in 0..slots {
            self.others.add(now.minus(Nanos(back * SLOT.0)), each);
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
        }
    }
}
