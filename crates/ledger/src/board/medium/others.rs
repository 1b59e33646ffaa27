//! What an observation tells of others, and whether classes are held from then on.

use discnice_units::{Moment, Nanos};

use super::look::{Exact, Kind, Look, News};
use super::totals::Moved;
use super::{MICROSECOND, Medium};
use crate::policy::throttle::{self, ATTACK, RELEASE, Seen, Thresholds, Waits};
use crate::primitive::Ordering;
use crate::recent::{Recent, SLOT};

/// Divisor of what others seem to have written that gives the share taken for what a file system
/// writes for us: an eighth at most.
const OVERHEAD: u64 = 8;

/// First and longest time for which waiting tasks are disregarded if no requests of theirs are seen
/// while classes are held on their account; the time doubles each time. (The kernel does not tell
/// which disk a task waits for.)
const DOUBT: (Nanos, Nanos) = (Nanos::SECOND, Nanos(10 * Nanos::SECOND.0));

impl Medium {
    /// Takes in one observation.
    pub(in crate::board) fn observe(
        &self,
        look: &Look,
        kind: &Kind,
        news: &News,
        (thresholds, stalled): (&Thresholds, bool),
    ) {
        let (now, was) = (look.now, self.is_throttled());
        let left = self.unexplained(look, kind, news);
        note(&self.others, now, look.gap, left.sum());
        let exact = look.exact.as_ref();
        let (waits, suspected) =
            exact.map(|exact| self.note_waiting(look, exact, news, left)).unzip();
        let seen = Seen { waits, ..self.seen(now, stalled) };
        let is = throttle::is_throttled(was, thresholds, &seen);
        if is != was {
            self.note_suspicion(now, is, suspected.unwrap_or(false));
            self.since.store(now.0, Ordering::Relaxed);
            self.throttled.store(is.into(), Ordering::Release);
        }
    }

    /// What the charges do not explain of the bytes that were moved.
    fn unexplained(&self, look: &Look, kind: &Kind, news: &News) -> Moved {
        let (moved, own) = (news.moved, news.own);
        let in_hand = |late: u64| news.work.in_hand().saturating_add(late);
        let inward = look.exact.map(|exact| in_hand(exact.late.inward));
        let outward =
            look.exact.map(|exact| in_hand(exact.late.outward).saturating_add(exact.unwritten));
        let most = |known: Option<u64>, most: u64| known.map_or(most, |known| known.min(most));
        // What is on its way is known; nothing of it is to be forgotten.
        let passed = if look.exact.is_some() { Nanos(0) } else { look.gap };
        let (pool, most_inward) = (&self.inward_pool, most(inward, kind.inward_most));
        let inward = kind.explain(pool, most_inward, own.inward, moved.inward, passed);
        let (pool, most_outward) = (&self.outward_pool, most(outward, kind.outward_most));
        let outward = kind.explain(pool, most_outward, own.outward, moved.outward, look.gap);
        Moved { inward, outward }
    }

    /// Notes for how long others waited if these bytes are theirs; returns their waiting of late, and whether it is only suspected.
    fn note_waiting(&self, look: &Look, exact: &Exact, news: &News, left: Moved) -> (Waits, bool) {
        let (now, work) = (look.now, news.work);
        let written = left.outward.saturating_sub(news.moved.outward / OVERHEAD);
        let foreign = left.inward.saturating_add(written);
        let span = look.gap.min(SLOT).0 / MICROSECOND;
        let mut waited = waiting(foreign, news.moved.sum(), news.done);
        if work.in_flight > 0 || news.done.0 > 0 {
            waited = waited.max(look.waiting.saturating_mul(span));
        }
        let mut suspected = false;
        if waited > 0 {
            self.suspected.store(0, Ordering::Relaxed);
        } else if work.in_flight > 0 && self.suspects(now, news) {
            waited = exact.strangers.saturating_mul(span);
            suspected = waited > 0;
        }
        note(&self.waiting, now, look.gap, waited);
        let seen = self.waits(now);
        // What was seen before does not matter any more if nothing is now.
        let attack = if waited > 0 { seen.attack } else { Nanos(0) };
        (Waits { attack, ..seen }, suspected)
    }

    /// Returns true if waiting tasks are believed to wait for this disk: they were not doubted of late, or classes are held as
    /// they wait and all that the disk has served since may be theirs as well as the classes' own, of which some is still on
    /// its way.
    fn suspects(&self, now: Moment, news: &News) -> bool {
        if !self.is_throttled() {
            return now.0 >= self.doubted_until.load(Ordering::Relaxed);
        }
        let is_suspected = self.suspected.load(Ordering::Relaxed) != 0;
        is_suspected && news.moved.inward > 0 && self.inward_pool.load(Ordering::Relaxed) > 0
    }

    /// Classes are held from now on, maybe only as tasks wait; or they are free again, and none of those tasks' requests was seen.
    fn note_suspicion(&self, now: Moment, held: bool, suspected: bool) {
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
    fn waits(&self, now: Moment) -> Waits {
        let lately = |back: u64| now.minus(Nanos(back * SLOT.0));
        let (spans, all) = (ATTACK.0 / SLOT.0, RELEASE.0 / SLOT.0);
        let any = |back: &u64| self.waiting.until(lately(*back), 1) > 0;
        Waits {
            attack: Nanos(self.waiting.until(now, spans) * MICROSECOND),
            spans: (0..all).filter(any).count() as u64,
            quiet: Nanos((0..all).find(any).unwrap_or(all) * SLOT.0),
        }
    }

    fn seen(&self, now: Moment, stalled: bool) -> Seen {
        let attack = self.others.until(now, ATTACK.0 / SLOT.0);
        let largest = self.others.largest(now, ATTACK.0 / SLOT.0);
        let since = Moment(self.since.load(Ordering::Relaxed));
        Seen {
            attack,
            // A burst may fall on the border of two slots, with a little around it.
            lasting: attack - largest.min(attack) > attack / 8,
            release: self.others.until(now, RELEASE.0 / SLOT.0),
            stalled,
            since: now.since(since),
            waits: None,
        }
    }
}

/// Enters what of the others was seen in the time `gap` before now.
fn note(recent: &Recent, now: Moment, gap: Nanos, units: u64) {
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
