//! Giving way on a network where others show only by the queue that they make.
//!
//! Behind one uplink no counter of this machine tells of other machines. Their packets stand in the same queue, so the
//! round trip of the job's own connections tells: what it takes longer than the least that was seen lately, the *base*,
//! is queue. As LEDBAT++ does ("LEDBAT++: Congestion Control for Background Traffic", IRTF draft), a path has a window:
//!
//! - it doubles each round trip until a queue begins, then is what the path carries without one;
//! - from there it grows while the queue is below the *target*, and shrinks in proportion to what is above;
//! - a queue of one and a half times the target is others': the window falls to a quarter each round trip, down to the
//!   least, and grows again when there has been no queue for [`PATIENCE`];
//! - every ten seconds it is a quarter for two round trips, so that a base that was measured in a queue of one's own is
//!   measured again, and a path that has become longer is not taken for a queue for ever.

mod seen;

use discnice_units::{Moment, Nanos};

use seen::Base;
pub use seen::Seen;

/// Least window: two segments.
pub const LEAST: u64 = 2 * SEGMENT;
/// A connection that has just begun may have so much in flight.
pub const FIRST: u64 = 64 << 10;
/// Bytes of a segment.
const SEGMENT: u64 = 1448;

/// Queue below which nothing is done, whatever the base.
const TARGET_MIN: Nanos = Nanos::from_millis(10);
const TARGET_MAX: Nanos = Nanos::from_millis(20);
/// A machine with a shorter base is in the same house: the kernel sends it up to 64 KiB at once, which is a queue of its own
/// (`tcp_tso_rtt_log`).
const NEAR: Nanos = Nanos::from_millis(2);
const TARGET_NEAR: Nanos = Nanos::from_millis(40);
/// The target is one in so many parts of the base.
const TARGET_PART: u64 = 8;

/// Without a queue for so long, the others are gone.
const PATIENCE: Nanos = Nanos::from_millis(500);
/// Shortest time between two decisions.
const SHORTEST: Nanos = Nanos::from_millis(20);
/// Slowdowns are so far apart, and nine times as far as they last.
const APART: Nanos = Nanos(10 * Nanos::SECOND.0);
const APART_TIMES: u64 = 9;
/// A window falls to one in so many parts.
const FALL: u64 = 4;
/// A window grows by one in so many parts of itself for each round trip without a queue.
const GROWTH: u64 = 16;

/// Part of a new rate in what is known of a path: one in so many.
const SMOOTHING: u64 = 8;
/// The least window is one in so many parts of what the path carries, so that it is still seen how it does.
const PARTS: u64 = 16;
/// Longest wait of an acknowledgement.
const ACK_MAX: Nanos = Nanos::from_millis(40);
/// A path with a shorter base is taken for one of this, as what is decided holds for about so long.
const BASE_MIN: Nanos = Nanos::from_millis(40);
/// Bytes of its own in the queue.
const OWN: u64 = 4 * SEGMENT;

/// What a path is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The window doubles, up to what the path carried before, if that is known.
    Starts,
    /// A queue of its own drains until then.
    Settles(Moment),
    /// It is near what the path carries.
    Goes,
    /// Others were seen last then.
    Yields(Moment),
    /// It is slow until then, to measure the base.
    Slows(Moment),
}

/// The window of a path in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Delay {
    base: Base,
    phase: Phase,
    window: u64,
    /// Bytes a second that the path carries; zero before that is known.
    rate: u64,
    /// The last decision: when, and bytes moved until then.
    decided: Option<(Moment, u64)>,
    /// Least round trip since then.
    trip: Nanos,
    queue: Nanos,
    slows_at: Moment,
}

impl Default for Delay {
    fn default() -> Self {
        Self {
            base: Base::UNKNOWN,
            phase: Phase::Starts,
            window: FIRST,
            rate: 0,
            decided: None,
            trip: Nanos(u64::MAX),
            queue: Nanos(0),
            slows_at: Moment::FIRST,
        }
    }
}

impl Delay {
    /// Bytes that may be in flight.
    #[must_use]
    pub fn window(&self) -> u64 {
        let (base, own) = (self.base.get(), self.own());
        let real = per(self.window, base.plus(own), self.length().plus(own));
        let least = if self.phase == Phase::Starts { FIRST } else { LEAST };
        if base >= BASE_MIN { self.window } else { real.max(least) }
    }

    /// What it is doing.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns true if it gives way to others.
    #[must_use]
    pub const fn yields(&self) -> bool {
        matches!(self.phase, Phase::Yields(_))
    }

    /// The queue at the last decision.
    #[must_use]
    pub const fn queue(&self) -> Nanos {
        self.queue
    }

    /// Bytes a second at which the window is used up in a round trip as it is now.
    #[must_use]
    pub fn rate(&self) -> u64 {
        per(self.window, Nanos::SECOND, self.length().plus(self.queue))
    }

    /// Takes in a look; decides once for each round trip, and returns true if it did.
    pub fn look(&mut self, seen: Seen) -> bool {
        if seen.trip.0 == 0 {
            return false;
        }
        let least = if seen.least.0 == 0 { seen.trip } else { seen.least.min(seen.trip) };
        self.base.note(seen.now, least);
        self.trip = self.trip.min(seen.trip);
        let Some((at, moved)) = self.decided else {
            self.decided = Some((seen.now, seen.moved));
            return true;
        };
        let gap = seen.now.since(at);
        if gap < self.trip.max(SHORTEST) {
            return false;
        }
        let rate = per(seen.moved.saturating_sub(moved), Nanos::SECOND, gap);
        let trip = core::mem::replace(&mut self.trip, Nanos(u64::MAX));
        self.decided = Some((seen.now, seen.moved));
        // RFC 1122, 4.2.3.2: not longer, and Linux waits for 40 ms.
        let second = per(2 * SEGMENT, Nanos::SECOND, Nanos(rate.max(1)));
        let waits = if seen.sends { Nanos(second).min(ACK_MAX) } else { Nanos(0) };
        self.queue = trip.minus(self.base.get()).minus(waits);
        self.decide(seen.now, trip, rate);
        true
    }

    /// The base as far as windows go.
    fn length(&self) -> Nanos {
        self.base.get().clamp(BASE_MIN, Nanos::SECOND)
    }

    /// The queue that is tried for.
    fn target(&self) -> Nanos {
        let base = self.base.get();
        if base < NEAR {
            return TARGET_NEAR;
        }
        Nanos((base.0 / TARGET_PART).clamp(TARGET_MIN.0, TARGET_MAX.0))
    }

    fn decide(&mut self, now: Moment, trip: Nanos, rate: u64) {
        let target = self.target();
        // What is in flight, and as much again as may stand in the queue.
        let room =
            in_flight(rate, trip.max(self.length()).plus(target)).saturating_mul(2).max(FIRST);
        match self.phase {
            Phase::Starts => self.start(now, trip, target, (rate, room)),
            // What was allowed before is on its way: a receiver cannot take that back.
            Phase::Settles(until)
                if self.queue > target
                    && (now < until
                        || in_flight(rate, trip.max(self.length())) > 3 * self.window) =>
            {
                self.rate = self.rate.midpoint(rate);
                self.window = in_flight(self.rate, self.length()) / 2;
            }
            Phase::Settles(_) | Phase::Goes => self.go(now, trip, target, (rate, room)),
            Phase::Yields(_) if self.queue > target => self.fall(now),
            Phase::Yields(seen) if now >= seen.plus(PATIENCE) => self.phase = Phase::Starts,
            Phase::Slows(until) if now >= until => self.phase = Phase::Starts,
            Phase::Yields(_) | Phase::Slows(_) => {}
        }
        self.window = self.window.max(LEAST).max(in_flight(self.rate, self.length()) / PARTS);
    }

    fn start(&mut self, now: Moment, trip: Nanos, target: Nanos, (rate, room): (u64, u64)) {
        if self.queue.0 > target.0 / 4 * 3 {
            self.rate = rate;
            // Half of it, while the queue of its own drains.
            self.window = in_flight(rate, self.length()) / 2;
            return self.settle(now, trip);
        }
        self.window = self.window.saturating_mul(2).min(room);
        let carried = in_flight(self.rate, self.length());
        if carried > 0 && self.window >= carried {
            self.window = carried;
            self.phase = Phase::Goes;
        }
    }

    fn settle(&mut self, now: Moment, trip: Nanos) {
        // What was sent is on its way for a round trip, and the smoothed round trip follows it.
        self.phase = Phase::Settles(now.plus(Nanos(2 * trip.0 + 2 * self.queue.0)));
        self.slows_at = self.slows_at.max(now.plus(APART));
    }

    fn go(&mut self, now: Moment, trip: Nanos, target: Nanos, (rate, room): (u64, u64)) {
        if matches!(self.phase, Phase::Settles(_)) {
            self.window = in_flight(self.rate, self.length());
        }
        self.phase = Phase::Goes;
        let queue = self.queue;
        // Without a queue, it is the window that made it so slow.
        if queue.0 > target.0 / 2 {
            self.rate = self.rate - self.rate / SMOOTHING + rate / SMOOTHING;
        } else if rate > self.rate {
            self.rate = self.rate.midpoint(rate).min(self.rate + self.rate / SMOOTHING + SEGMENT);
        }
        if queue.0 > target.0 + target.0 / 2 {
            return self.fall(now);
        }
        if queue > target {
            self.window -= per(self.window, queue.minus(target), Nanos(2 * target.0));
        } else {
            // Back to what the path is known to carry quickly, beyond that slowly.
            let most = self.most();
            let part = if self.window < most - most / 8 { GROWTH / 4 } else { GROWTH };
            let step = (self.window / part).max(SEGMENT);
            self.window += per(step, target.minus(queue), target);
            self.window = self.window.min(room).min(most);
        }
        if now >= self.slows_at {
            self.slow(now, trip);
        }
    }

    /// The window with which the path is busy and the queue short: a smaller share of a path may have a longer one, so that
    /// shares become equal.
    fn most(&self) -> u64 {
        in_flight(self.rate, self.length().plus(self.own())).max(LEAST)
    }

    /// How long the queue of its own may be.
    fn own(&self) -> Nanos {
        let target = self.target().0;
        let own = per(OWN, Nanos::SECOND, Nanos(self.rate.max(1)));
        Nanos(own.clamp(target / 3, target / 2))
    }

    fn slow(&mut self, now: Moment, trip: Nanos) {
        let lasts = Nanos(2 * trip.max(self.length()).0);
        self.phase = Phase::Slows(now.plus(lasts));
        // It takes two more round trips to double twice.
        self.slows_at = now.plus(APART.max(Nanos(2 * lasts.0 * APART_TIMES)));
        self.window /= FALL;
    }

    fn fall(&mut self, now: Moment) {
        self.phase = Phase::Yields(now);
        self.window /= FALL;
    }
}

/// Bytes that a rate has in flight for so long.
fn in_flight(rate: u64, time: Nanos) -> u64 {
    per(rate, time, Nanos::SECOND)
}

/// `amount * part / whole`.
fn per(amount: u64, part: Nanos, whole: Nanos) -> u64 {
    let product = u128::from(amount) * u128::from(part.0) / u128::from(whole.0.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
