//! What an observation tells of others, and whether classes are held from then on.

use discnice_units::Nanos;

use super::look::{Exact, Kind, Look};
use super::totals::{Moved, Work};
use super::{MICROSECOND, Medium};
use crate::policy::throttle::{self, ATTACK, RELEASE, Seen, Thresholds, Waits};
use crate::primitive::Ordering;
use crate::recent::{Recent, SLOT};

/// The largest request that the kernel makes of ordinary reads: `max_sectors_kb` of most disks since Linux 6.16. Before, it was
/// 1.25 MiB.
const REQUEST: u64 = 4 << 20;
/// Divisor of what others seem to have written that gives the share taken for what a file system
/// writes for us: an eighth at most.
const OVERHEAD: u64 = 8;

/// First and longest time for which waiting tasks are disregarded if no requests of theirs are seen
/// while classes are held on their account; the time doubles each time. (The kernel does not tell
/// which disk a task waits for.)
const DOUBT: (Nanos, Nanos) = (Nanos::SECOND, Nanos(10 * Nanos::SECOND.0));

impl Medium {
    /// Takes in one observation: `moved` bytes, of which `own` were charged.
    pub(in crate::board) fn observe(
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
