//! When to hold a process and when to let it go: times and amounts in, decisions out.
//!
//! A process pays after the fact, so it alternates: it runs until what it moved is worth holding it
//! for, stands until that is paid for, and so on. It stands in short slices; when one is over and a
//! signal waits for the process, it is let go for a breath to receive it. (A breath after every
//! slice would let a program under a low limit through at one read-ahead window a second.)

use discnice_units::{Moment, Nanos};

use crate::schedule::{crowd, unseen};
use crate::tuning;

/// Times since a process moved bytes last, and the interval of looks at it until then.
const PACES: [(Nanos, Nanos); 3] = [
    (tuning::looks::BUSY_FOR, tuning::looks::BUSY),
    (tuning::looks::RECENT_FOR, tuning::looks::RECENT),
    (tuning::looks::QUIET_FOR, tuning::looks::QUIET),
];

/// What to do with a process now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Let it run; look again then.
    Run(Moment),
    /// Hold it; look again then at the latest.
    Hold(Moment),
}

/// When one process is to be stopped, continued and looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedule {
    /// When what it moved is paid for.
    paid_at: Moment,
    /// Since when the present slice of its stop lasts.
    stopped_since: Option<Moment>,
    /// Until when it runs to receive a signal.
    window_until: Moment,
    /// When it last moved bytes.
    moved_at: Moment,
    /// Since when it could not be looked at, as it executes a program.
    unseen_since: Option<Moment>,
    /// Cheap looks since the last thorough one.
    glances: u32,
    /// When it is to be looked at next.
    pub due: Moment,
}

impl Schedule {
    /// A process that was found at `now`; at first it is looked at closely.
    #[must_use]
    pub fn new(now: Moment) -> Self {
        Self { moved_at: now, ..Self::default() }
    }

    /// Bytes were found that will be paid for at `paid_at`.
    pub fn note_debt(&mut self, now: Moment, paid_at: Moment) {
        self.moved_at = now;
        self.paid_at = self.paid_at.max(paid_at);
    }

    /// Traffic was found that will be paid for at `paid_at`. That is found elsewhere than in the process's account, which
    /// need not be looked at closely.
    pub fn note_traffic_debt(&mut self, paid_at: Moment) {
        self.paid_at = self.paid_at.max(paid_at);
    }

    /// Notes that the process is about to do something new: it is looked at as closely as one that
    /// moves bytes.
    pub fn look_closely(&mut self, now: Moment) {
        self.moved_at = now;
    }

    /// The limits changed: what is owed is now paid for at `paid_at`, if that is sooner.
    pub fn shorten_debt(&mut self, paid_at: Moment) {
        self.paid_at = self.paid_at.min(paid_at);
    }

    /// Returns true if the next look must be a thorough one.
    #[must_use]
    pub fn needs_thorough_look(&self) -> bool {
        self.glances >= tuning::looks::GLANCES
    }

    /// Notes a cheap look.
    pub fn note_glance(&mut self) {
        self.unseen_since = None;
        self.glances += 1;
    }

    /// Notes a thorough look.
    pub fn note_thorough_look(&mut self) {
        self.unseen_since = None;
        self.glances = 0;
    }

    /// When to look again at a process that cannot be looked at, as it executes a program.
    pub fn put_off(&mut self, now: Moment, crowd: Nanos) -> Moment {
        let since = *self.unseen_since.get_or_insert(now);
        crowd::next(now, unseen::apart(now, since), crowd)
    }

    /// When it moved bytes last.
    #[must_use]
    pub fn moved_at(&self) -> Moment {
        self.moved_at
    }

    /// How far looks at a process that was seen to do nothing are apart; `None` while something is owed,
    /// or it is or was just held.
    #[must_use]
    pub fn idle_pace(&self, now: Moment, crowd: Nanos) -> Option<Nanos> {
        let busy =
            self.stopped_since.is_some() || now < self.window_until.plus(tuning::looks::BUSY);
        (!busy && self.paid_at <= now).then(|| self.pace(now, crowd))
    }

    /// What to do now. `crowd` is the shortest time between two looks at one process that does
    /// nothing, of so many that are watched; `signalled` tells whether a signal waits for it.
    pub fn decide(
        &mut self,
        now: Moment,
        crowd: Nanos,
        signalled: impl FnOnce() -> bool,
    ) -> Decision {
        if let Some(since) = self.stopped_since {
            let end = since.plus(tuning::holding::LONGEST_STOP);
            if now < self.paid_at && (now < end || !signalled()) {
                let end = if now < end { end } else { now.plus(tuning::holding::LONGEST_STOP) };
                self.stopped_since = Some(end.minus(tuning::holding::LONGEST_STOP));
                return Decision::Hold(self.paid_at.min(end));
            }
            self.stopped_since = None;
            // The process goes on with what it was held for.
            self.moved_at = now;
            self.window_until = now.plus(tuning::holding::SIGNAL_WINDOW);
        }
        if now < self.window_until {
            return Decision::Run(self.window_until);
        }
        let worth = if self.window_until.plus(tuning::looks::BUSY) > now {
            Nanos(0)
        } else {
            tuning::holding::TOLERATED_DEBT
        };
        if self.paid_at > now.plus(worth) {
            self.stopped_since = Some(now);
            return Decision::Hold(self.paid_at.min(now.plus(tuning::holding::LONGEST_STOP)));
        }
        Decision::Run(crowd::next(now, self.pace(now, crowd), crowd))
    }

    fn pace(&self, now: Moment, crowd: Nanos) -> Nanos {
        let idle = now.since(self.moved_at);
        let slowest = Nanos(idle.0 / tuning::looks::IDLE_SHARE)
            .min(tuning::looks::DORMANT)
            .max(tuning::looks::IDLE);
        let pace = PACES.iter().find(|(until, _)| idle < *until).map_or(slowest, |(_, pace)| *pace);
        // One that moves bytes is looked at closely however many there are.
        if idle < PACES[0].0 { pace } else { pace.max(crowd) }
    }
}

/// How soon to look again at a process that is held but not wholly asleep.
#[must_use]
pub fn close(now: Moment) -> Moment {
    now.plus(tuning::looks::BUSY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(100 * Nanos::SECOND.0);
    const CROWD: Nanos = Nanos(0);

    /// How often a debt of 120 ms lets a process breathe.
    fn breaths(signalled: bool) -> u32 {
        let mut schedule = Schedule::new(NOW);
        assert!(matches!(schedule.decide(NOW, CROWD, || false), Decision::Run(_)));
        let paid = NOW.plus(Nanos::from_millis(120));
        schedule.note_debt(NOW, paid);
        let (mut now, mut held, mut breaths) = (NOW, Nanos(0), 0);
        loop {
            match schedule.decide(now, CROWD, || signalled) {
                Decision::Hold(until) => {
                    assert!(until > now && until.since(now) <= tuning::holding::LONGEST_STOP);
                    held = held.plus(until.since(now));
                    now = until;
                }
                Decision::Run(until) if now < paid => {
                    breaths += 1;
                    now = until;
                }
                Decision::Run(_) => break,
            }
        }
        assert!(held >= Nanos::from_millis(119) && now <= paid.plus(Nanos::from_millis(1)));
        breaths
    }

    #[test]
    fn a_debt_is_held_for_in_slices_until_it_is_paid() {
        assert_eq!((breaths(false), breaths(true)), (0, 2));
    }

    #[test]
    fn small_debts_wait_for_more() {
        let mut schedule = Schedule::new(NOW);
        schedule.note_debt(NOW, NOW.plus(Nanos::from_millis(2)));
        assert!(matches!(schedule.decide(NOW, CROWD, || false), Decision::Run(_)));
        schedule.note_debt(NOW, NOW.plus(Nanos::from_millis(30)));
        assert!(matches!(schedule.decide(NOW, CROWD, || false), Decision::Hold(_)));
    }

    #[test]
    fn higher_limits_let_go_at_once() {
        let mut schedule = Schedule::new(NOW);
        schedule.note_debt(NOW, NOW.plus(Nanos::SECOND));
        assert!(matches!(schedule.decide(NOW, CROWD, || false), Decision::Hold(_)));
        schedule.shorten_debt(Moment::FIRST);
        assert!(matches!(schedule.decide(NOW.plus(Nanos(1)), CROWD, || false), Decision::Run(_)));
    }

    #[test]
    fn the_idle_are_looked_at_less_often() {
        let mut schedule = Schedule::new(NOW);
        let mut wait = |after: u64| {
            let now = NOW.plus(Nanos::from_millis(after));
            let Decision::Run(next) = schedule.decide(now, CROWD, || false) else {
                panic!("owes nothing")
            };
            next.since(now)
        };
        assert!(wait(1) < wait(100) && wait(100) < wait(8_000));
        assert_eq!((wait(8_000), wait(25_600)), (Nanos::from_millis(4), Nanos::from_millis(50)));
        assert_eq!(
            (wait(60_000), wait(3_600_000)),
            (tuning::looks::DORMANT, tuning::looks::DORMANT)
        );
    }
}
