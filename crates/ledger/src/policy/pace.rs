//! The rate window as a frontier.
//!
//! The paper (Rate Windows, 3.2, figures 2 and 3) keeps the last 100 operations of the last five
//! seconds and delays the next one by B/R - T, where B is what the window holds, T how long it
//! has lasted and R the threshold. Shared by any number of processes, a queue of operations
//! would need a lock, and a burst after idling may be as long as the window.
//!
//! The same delay follows from one number, the *frontier*: the moment at which everything that
//! has passed is paid for at rate R. An amount may pass once the frontier is reached, and moves
//! it by amount/R. A frontier in the past is unused allowance; only a little of it is kept
//! ([`Rule::credit`]), so that over any window of length W at most that more than R W passes, plus the
//! one amount that crosses the border, which callers keep small ([`Rule::slice`]).
//!
//! DiscNice's own N = 1 s (DiscNice, 5.3) is the same rule with a window of one second.

use discnice_units::{Moment, Nanos, Rate};

use crate::policy::contract::{Past, Policy, Reservation};

//= discnice/5.3-n
/// The window of the Rate Windows paper, 3.2.
pub const WINDOW: Nanos = Nanos(5 * Nanos::SECOND.0);

/// Furthest start that is promised to a caller; see [`Rule::reserve`].
const QUEUE: Nanos = Nanos(2 * Nanos::SECOND.0);

//= rate-windows/3.2-shortest
/// A sleep shorter than this is not worth its context switches (Rate Windows, 3.2: the lower
/// bound of a sleep); the debt stays, so that nothing is lost.
pub const SHORTEST_SLEEP: Nanos = Nanos::from_millis(1);

/// How much of the rate one piece of work should be at most: the upper bound of a sleep that
/// splits large operations (Rate Windows, 3.2).
const SLICE_TIME: Nanos = Nanos::from_millis(40);
/// Share of the rate for one piece of a class that gives way, where each piece is a seek there and
/// back at the others' expense.
const LONG_SLICE_TIME: Nanos = Nanos::from_millis(100);
/// Whatever its size, a piece costs the others on a rotating disk a seek there and one back, some 18 ms
/// (docs/adr/0001-frontier.md). So pieces below this size may take [`WELL_TIME`] of the rate,
const SLICE_WELL: u64 = 512 << 10;
const WELL_TIME: Nanos = Nanos::from_millis(100);
/// smaller ones even 4 % of five seconds,
const SLICE_SMALL: u64 = 192 << 10;
const SMALL_TIME: Nanos = Nanos::from_millis(192);
/// and none is smaller than this.
const SLICE_MIN: u64 = 128 << 10;
/// None is smaller than a page, whatever the user gives.
const SLICE_LEAST: u64 = 4096;
/// Larger pieces gain nothing: a disk is at full speed well before.
const SLICE_MAX: u64 = 4 << 20;

/// Share of the rate for one turn of a member while others wait,
const TURN_TIME: Nanos = Nanos::from_millis(16);
/// and its least: what programs read and write at once.
const TURN_MIN: u64 = 64 << 10;

//= rate-windows/5.2-not-to-exceed
/// A threshold and the window over which it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The threshold.
    pub rate: Rate,
    /// Over which time it holds.
    pub window: Nanos,
    /// The longest sleep that one piece of work should cause, if the user has given one.
    pub longest: Option<Nanos>,
}

const fn at_least(value: u64, bound: u64) -> u64 {
    if value < bound { bound } else { value }
}

const fn at_most(value: u64, bound: u64) -> u64 {
    if value > bound { bound } else { value }
}

impl Rule {
    /// The rate that is aimed at: a limit is a promise not to exceed, so a little stays free for
    /// the amounts that cross the window's border.
    const fn aim(&self) -> Rate {
        if self.rate.is_unlimited() {
            return self.rate;
        }
        Rate::per_second(self.rate.get() - self.rate.get() / 128)
    }

    //= rate-windows/5.2-forget
    /// Returns the unused allowance that is kept, so that a thread that computes for a moment loses
    /// nothing: as much as keeps any window below 1.025 of the rate beside the one piece that
    /// crosses its border; below 1.02 where that is one of [`SLICE_TIME`].
    #[must_use]
    pub const fn credit(&self) -> Nanos {
        let room = Nanos(self.window.0 / 1000 * 30).minus(self.rate.time_for(self.slice()));
        let least = Nanos(self.window.0 / 200);
        let most = Nanos(least.0 * 3);
        if room.0 < least.0 {
            return least;
        }
        if room.0 > most.0 { most } else { room }
    }

    //= discnice/6.5-gradual
    /// The largest piece, in bytes, in which work should be done under this rule.
    #[must_use]
    pub const fn slice(&self) -> u64 {
        self.slice_of(SLICE_TIME)
    }

    /// Returns the largest piece, in bytes, for a class that gives way.
    #[must_use]
    pub const fn long_slice(&self) -> u64 {
        self.slice_of(LONG_SLICE_TIME)
    }

    //= rate-windows/3.2-longest
    const fn slice_of(&self, time: Nanos) -> u64 {
        if let Some(longest) = self.longest {
            let bytes = at_least(self.rate.units_in(longest), SLICE_LEAST);
            return at_most(bytes, SLICE_MAX) / SLICE_LEAST * SLICE_LEAST;
        }
        let least = at_least(
            at_least(at_most(self.rate.units_in(SMALL_TIME), SLICE_SMALL), SLICE_MIN),
            at_most(self.rate.units_in(WELL_TIME), SLICE_WELL),
        );
        let bytes = at_least(self.rate.units_in(time), least);
        at_most(bytes, SLICE_MAX) / 4096 * 4096
    }

    /// Returns the largest amount, in bytes, that a member reserves at once while others wait.
    #[must_use]
    pub const fn turn(&self) -> u64 {
        at_least(self.rate.units_in(TURN_TIME), TURN_MIN)
    }

    /// Returns how long a turn of so many bytes takes the class.
    #[must_use]
    pub const fn time_for(&self, bytes: u64) -> Nanos {
        self.aim().time_for(bytes)
    }

    //= discnice/5.3-window
    /// Returns the moment from which `amount` units may pass, or none when the queue is too long
    /// to promise one: then wait until `retry_at` and ask again. The bound keeps a crowd of
    /// waiters that is killed from leaving a debt that was never spent.
    const fn take_place(&self, frontier: Moment, now: Moment, amount: u64) -> Reservation {
        let from = self.from(frontier, now);
        let start = if from.0 > now.0 { from } else { now };
        if start.0 > now.plus(QUEUE).0 {
            return Reservation { start: None, frontier };
        }
        Reservation { start: Some(start), frontier: from.plus(self.aim().time_for(amount)) }
    }

    /// The frontier after `amount` units, which are charged already, turned out to be paid for only
    /// after `time`, but no further than `longest` from now.
    #[must_use]
    pub const fn prolong(
        &self,
        frontier: Moment,
        now: Moment,
        amount: u64,
        (time, longest): (Nanos, Nanos),
    ) -> Moment {
        let later = self.from(frontier, now).plus(time.minus(self.aim().time_for(amount)));
        let limit = now.plus(longest);
        if later.0 > limit.0 && limit.0 > frontier.0 { limit } else { later }
    }

    /// The frontier after `amount` units, which are charged already and began to pass at `begun`, where they are paid
    /// for at `least`, a lower rate.
    #[must_use]
    pub const fn no_later(
        &self,
        frontier: Moment,
        begun: Moment,
        amount: u64,
        least: Rate,
    ) -> Moment {
        let before = self.from(frontier.minus(self.aim().time_for(amount)), begun);
        let paid = before.plus(least.time_for(amount));
        if paid.0 < frontier.0 { frontier } else { paid }
    }

    /// The frontier after the rate changed from `self.rate` to `rate`: the debt in units stays.
    #[must_use]
    pub const fn rescale(&self, frontier: Moment, now: Moment, rate: Rate) -> Moment {
        let debt = frontier.since(now);
        if rate.is_unlimited() || self.rate.is_unlimited() {
            return Moment::FIRST;
        }
        let units = self.rate.units_in(debt);
        if units == 0 { frontier } else { now.plus(rate.time_for(units)) }
    }

    /// Returns where the frontier starts: unused allowance older than the credit is forgotten.
    const fn from(&self, frontier: Moment, now: Moment) -> Moment {
        let oldest = now.minus(self.credit());
        if frontier.0 < oldest.0 { oldest } else { frontier }
    }
}

impl Policy for Rule {
    fn looks_back(&self) -> Nanos {
        Nanos(0)
    }

    fn forgets(&self) -> Nanos {
        self.credit()
    }

    fn reserve(&self, past: Past, now: Moment, amount: u64) -> Reservation {
        self.take_place(past.frontier, now, amount)
    }

    //= rate-windows/3.2-delay
    fn retry_at(&self, frontier: Moment, now: Moment) -> Moment {
        frontier.minus(Nanos(QUEUE.0 / 2)).max(now)
    }

    fn charge(&self, past: Past, now: Moment, amount: u64) -> Moment {
        self.from(past.frontier, now).plus(self.aim().time_for(amount))
    }

    fn refund(&self, frontier: Moment, amount: u64) -> Moment {
        frontier.minus(self.aim().time_for(amount))
    }
}

#[cfg(test)]
mod tests;
