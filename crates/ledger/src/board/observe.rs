//! Making an observation.

use discnice_units::{Moment, Nanos};

use super::medium::{Exact, Kind, Look, News};
use crate::board::{ALL_DISKS, Board, MEDIA, Moved, NETWORK, Work};
use crate::policy::throttle::{INTERVAL, STALE, Thresholds};
use crate::primitive::Ordering;

/// Tasks stall when at least one did for this part of the time, in percent.
const STALLED_PERCENT: u64 = 20;

/// What the machine says: all that each medium has moved, and for how long tasks have stalled.
#[derive(Debug, Clone, Default)]
pub struct MachineTotals {
    media: [Moved; MEDIA],
    work: [Work; MEDIA],
    stalled: Nanos,
    /// See [`Look::exact`].
    exact: Option<Exact>,
    /// Tasks of no class that wait and have files on this medium.
    waiting: [u64; MEDIA],
    /// Namespace that the network's figures are from.
    namespace: Option<u64>,
}

impl MachineTotals {
    /// Nothing has moved, and tasks have stalled on I/O for so long since the machine started.
    #[must_use]
    pub fn new(stalled: Nanos) -> Self {
        Self { stalled, ..Self::default() }
    }

    /// Adds what a disk has moved, and what it had to do.
    pub fn add_disk(
        &mut self,
        board: &Board,
        id: u64,
        physical: bool,
        (moved, work): (Moved, Work),
    ) {
        if physical
            && let (Some(all), Some(most)) =
                (self.media.get_mut(ALL_DISKS), self.work.get_mut(ALL_DISKS))
        {
            *all = all.plus(moved);
            // With several disks it is unknown which one the work is for; the sum errs on the safe
            // side.
            *most = most.plus(work);
        }
        let disks = board.media().iter().zip(self.media.iter_mut().zip(&mut self.work));
        // A disk may be told of path by path.
        for (_, (all, most)) in disks.skip(NETWORK + 1).filter(|(medium, _)| medium.id() == id) {
            (*all, *most) = (all.plus(moved), most.plus(work));
        }
    }

    /// Says that it is known what all members have moved, `late` of it while the disks were asked, and that no more than
    /// `unwritten` bytes of the page cache were still to be written before.
    pub fn set_exact(&mut self, late: Moved, unwritten: u64) {
        self.exact = Some(Exact { late, unwritten, strangers: 0 });
    }

    /// Adds a task of no class that waits for a disk. Which one is told by the disks that its files lie on; `None` where that is
    /// not to be known.
    pub fn add_stranger(&mut self, board: &Board, disks: Option<&[u64]>) {
        let Some(disks) = disks else {
            if let Some(exact) = &mut self.exact {
                exact.strangers = exact.strangers.saturating_add(1);
            }
            return;
        };
        let is_there = |place: usize, id: u64| match place {
            ALL_DISKS => !disks.is_empty(),
            NETWORK => false,
            _ => id != 0 && disks.contains(&id),
        };
        for (place, (medium, waiting)) in board.media().iter().zip(&mut self.waiting).enumerate() {
            *waiting = waiting.saturating_add(is_there(place, medium.id()).into());
        }
    }

    /// Says what the network interfaces of a namespace have moved for programs, headers left out.
    pub fn set_network(&mut self, namespace: u64, moved: Moved) {
        self.namespace = Some(namespace);
        if let Some(network) = self.media.get_mut(NETWORK) {
            *network = moved;
        }
    }
}

/// Returns true if an observation made at `observed` is to be replaced.
const fn is_old(observed: Moment, now: Moment, interval: Nanos) -> bool {
    now.since(observed).0 >= interval.0 || has_run_back(observed, now)
}

/// Returns true if the clock was set back since `observed`. Otherwise no one would observe until it
/// has caught up.
const fn has_run_back(observed: Moment, now: Moment) -> bool {
    observed.since(now).0 > STALE.0
}

impl Board {
    /// Claims the next observation: returns the time since the last one if that is old and no other
    /// process makes a new one. The caller must then make it.
    #[must_use]
    pub fn claim_observation(&self, now: Moment) -> Option<Nanos> {
        self.claim_observation_after(now, INTERVAL)
    }

    /// Claims the next observation like [`Self::claim_observation`], where one is old after
    /// `interval`.
    #[must_use]
    pub fn claim_observation_after(&self, now: Moment, interval: Nanos) -> Option<Nanos> {
        let before = self.observed();
        if !is_old(before, now, interval) {
            return None;
        }
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        self.header.observed.compare_exchange(before.0, now.0, order.0, order.1).ok()?;
        // How long it is since then, such a clock does not tell.
        Some(if has_run_back(before, now) { Nanos(u64::MAX) } else { now.since(before) })
    }

    /// Returns true if the last observation is so old that the next process that looks makes a new
    /// one.
    #[must_use]
    pub fn is_due(&self, now: Moment) -> bool {
        is_old(self.observed(), now, INTERVAL)
    }

    /// Enters an observation that was made `gap` after the last one.
    pub fn enter(&self, now: Moment, gap: Nanos, totals: &MachineTotals) {
        let mut moved = [None; MEDIA];
        for (place, ((new, medium), all)) in
            moved.iter_mut().zip(&self.media).zip(&totals.media).enumerate()
        {
            if place != NETWORK || totals.namespace.is_some_and(|id| medium.is_of(id, now)) {
                *new = medium.enter(*all);
            }
        }
        let (own, weights) = self.explained(now, &moved.map(Option::unwrap_or_default));
        let stalled = totals.stalled.0;
        let stalled =
            Nanos(stalled).minus(Nanos(self.header.stalled.swap(stalled, Ordering::Relaxed)));
        let mut done = [(0, Nanos(0)); MEDIA];
        for (done, (medium, (work, moved))) in
            done.iter_mut().zip(self.media.iter().zip(totals.work.iter().zip(moved)))
        {
            *done = medium.enter_work(work, moved.unwrap_or_default(), gap);
        }
        if gap > STALE {
            self.media.iter().for_each(super::Medium::start_anew);
            return;
        }
        let stalled = stalled.0.saturating_mul(100) > gap.0.saturating_mul(STALLED_PERCENT);
        let thresholds = self.thresholds();
        let look = |exact, waiting| Look { now, gap, exact, waiting };
        let all =
            self.media.iter().zip(moved).zip(own).zip(weights).zip(totals.work.iter().zip(done));
        for (place, ((((medium, moved), own), weights), (work, done))) in all.enumerate() {
            // What was charged before a medium was first looked at explains nothing of it later.
            let Some(moved) = moved else { continue };
            let (kind, busy) = if place == NETWORK {
                (&Kind::NETWORK, (&Thresholds::NETWORK, false))
            } else {
                (&Kind::DISK, (&thresholds, stalled))
            };
            let exact = totals.exact.filter(|_| place != NETWORK);
            let waiting = totals.waiting.get(place).copied().unwrap_or_default();
            medium.set_weights(weights);
            let news = News { moved, own, work: *work, done };
            medium.observe(&look(exact, waiting), kind, &news, busy);
        }
    }

    /// What all classes have read and written, charged or not, as far as they have told.
    #[must_use]
    pub fn charged(&self) -> Moved {
        self.used().iter().fold(Moved::default(), |sum, slot| sum.plus(slot.moved()))
    }

    /// What of each medium's traffic the classes were charged, and the weights of those that have
    /// work to do there. A class on several disks was charged on each in proportion to what the
    /// disk moved.
    fn explained(&self, now: Moment, moved: &[Moved; MEDIA]) -> ([Moved; MEDIA], [u32; MEDIA]) {
        let (mut own, mut weights) = ([Moved::default(); MEDIA], [0u32; MEDIA]);
        for slot in self.used() {
            let (news, weight, media) = (slot.news(), slot.active_weight(now), slot.media());
            let is_on = |place: usize| media >> place & 1 != 0;
            let whole = moved.iter().enumerate().filter(|(place, _)| is_on(*place));
            let whole = whole.fold(0u64, |sum, (_, moved)| sum.saturating_add(moved.sum()));
            for (place, ((own, weights), moved)) in
                own.iter_mut().zip(&mut weights).zip(moved).enumerate()
            {
                let part = match place {
                    ALL_DISKS => news.disk,
                    NETWORK => news.network,
                    _ if is_on(place) => news.disk.part(moved.sum(), whole),
                    _ => continue,
                };
                *own = own.plus(part);
                *weights = weights.saturating_add(weight);
            }
        }
        (own, weights)
    }
}
