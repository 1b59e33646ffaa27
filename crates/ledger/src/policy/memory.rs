//! Limits the resident memory that a class may keep while memory is short (Rate Windows, 2).
//!
//! The paper changes the kernel's page replacement: above the high threshold it takes the guest's
//! pages first, below the low one the host's, and between them the oldest, regardless of their
//! owner. Outside the kernel there is one way to make pages old, which is not to touch them. So a
//! class that has more than its high threshold while others wait for memory is stopped. It runs
//! again when its pages were reclaimed down to the low threshold, or no task waits any more.
//! Between the thresholds it runs, and competes.

use core::fmt;

use discnice_units::{Bytes, Moment, Nanos};

/// The unit in which thresholds are kept.
const UNIT: u64 = 64 << 10;
/// A guest that was given no thresholds has these parts of the machine's memory: the paper calls 5 and 10 %
/// "very acceptable for most cases".
const LOW_PART: u64 = 20;
const HIGH_PART: u64 = 10;

//= rate-windows/2-no-hard-limit
/// The thresholds as they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Units, or zero where nothing was given.
    low: u32,
    /// Units, zero where nothing was given, or [`u32::MAX`] for no threshold.
    high: u32,
}

/// The thresholds that hold, in bytes of resident memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Down to this much is taken.
    pub low: u64,
    /// Above this much is taken.
    pub high: u64,
}

impl Memory {
    /// Nothing was given.
    pub const DEFAULT: Self = Self { low: 0, high: 0 };

    /// Returns these thresholds with another low one, rounded up to 64 KiB.
    #[must_use]
    pub fn with_low(self, low: Bytes) -> Self {
        Self { low: units(low), ..self }
    }

    /// Returns these thresholds with another high one, rounded up to 64 KiB; `None` for none.
    #[must_use]
    pub fn with_high(self, high: Option<Bytes>) -> Self {
        Self { high: high.map_or(u32::MAX, units), ..self }
    }

    /// The low threshold, if one was given.
    #[must_use]
    pub fn low(self) -> Option<Bytes> {
        (self.low != 0).then(|| Bytes::new(u64::from(self.low) * UNIT))
    }

    /// The high threshold, if one was given and is not `unlimited`.
    #[must_use]
    pub fn high(self) -> Option<Bytes> {
        (!matches!(self.high, 0 | u32::MAX)).then(|| Bytes::new(u64::from(self.high) * UNIT))
    }

    /// Returns true if the class was declared free of thresholds.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self.high == u32::MAX
    }

    /// Packs the thresholds into one word of shared memory.
    #[must_use]
    pub fn to_word(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    /// Unpacks thresholds from that word; every value is valid.
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        Self { low: word as u32, high: (word >> 32) as u32 }
    }

    //= rate-windows/2-defaults
    /// What holds on a machine with so many bytes: one threshold alone makes the other its half or its double; a
    /// guest without any gets parts of the machine. `None`: nothing.
    #[must_use]
    pub fn bounds(self, guest: bool, machine: u64) -> Option<Bounds> {
        let given = |threshold: Option<Bytes>| threshold.map(Bytes::get);
        Some(match (given(self.low()), given(self.high())) {
            _ if self.is_unlimited() => return None,
            (Some(low), Some(high)) => Bounds { low: low.min(high), high },
            (None, Some(high)) => Bounds { low: high / 2, high },
            (Some(low), None) => Bounds { low, high: low.saturating_mul(2) },
            (None, None) if guest => Bounds { low: machine / LOW_PART, high: machine / HIGH_PART },
            (None, None) => return None,
        })
    }

    /// Returns true if the low threshold is above the high one.
    #[must_use]
    pub fn contradicts_itself(self) -> bool {
        matches!((self.low(), self.high()), (Some(low), Some(high)) if low > high)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", Bytes::new(self.low), Bytes::new(self.high))
    }
}

fn units(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get().div_ceil(UNIT)).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
}

/// Longest time that a class stays stopped, and shortest time that it runs afterwards: a class that
/// is stopped for good releases no memory.
const LONGEST: Nanos = Nanos::from_millis(8_000);
const TURN: Nanos = Nanos::from_millis(50);
/// Time without a waiting task after which memory is no longer short. It is longer if other tasks,
/// which return to their pages now and then, were short of it lately.
const CALM: Nanos = Nanos::from_millis(150);
const CALM_OTHERS: Nanos = Nanos::from_millis(1_000);
/// Age up to which something counts as lately.
const LATELY: Nanos = Nanos::from_millis(4_000);
/// Time for which a class is left alone if only itself waited for memory; it doubles each time up
/// to [`LONGEST`].
const EXCUSE: Nanos = Nanos::from_millis(500);

/// Tasks that waited for memory since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// None, or memory is not scarce.
    None,
    /// Some; while the class is stopped, these are others.
    Tasks,
    /// Tasks outside classes with memory thresholds.
    Others,
}

/// Tells if a class runs or is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The class runs, at least until then.
    Runs { at_least: Moment },
    /// The class has been stopped since then.
    Stands { since: Moment },
}

/// What is decided for one class, look by look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regulation {
    state: State,
    /// How long it is left alone next time.
    excuse: Nanos,
    /// When others were seen to wait last.
    others: Moment,
}

impl Default for Regulation {
    fn default() -> Self {
        Self {
            state: State::Runs { at_least: Moment::FIRST },
            excuse: EXCUSE,
            others: Moment::FIRST,
        }
    }
}

impl Regulation {
    /// Returns true if the class is stopped.
    #[must_use]
    pub fn stands(&self) -> bool {
        matches!(self.state, State::Stands { .. })
    }

    //= rate-windows/2-high
    //= ms-manners/3-memory
    /// Decides if the class, with so many bytes resident, is stopped from now on.
    pub fn decide(&mut self, now: Moment, bounds: Bounds, resident: u64, waited: Waited) -> bool {
        let pressed = waited != Waited::None;
        if waited == Waited::Others || pressed && self.stands() {
            self.others = now;
        }
        match self.state {
            State::Runs { at_least } => {
                if pressed && now >= at_least && resident > bounds.high {
                    self.state = State::Stands { since: now };
                }
            }
            State::Stands { since } => {
                let lately = now < self.others.plus(LATELY);
                let calm =
                    now >= self.others.max(since).plus(if lately { CALM_OTHERS } else { CALM });
                if resident <= bounds.low || calm || now >= since.plus(LONGEST) {
                    self.run(now, calm && !lately);
                }
            }
        }
        self.stands()
    }

    //= rate-windows/2-between
    /// Lets the class run. A class that alone waited for memory does not wait while stopped, since
    /// no other task is short of it.
    fn run(&mut self, now: Moment, alone: bool) {
        let at_least = if alone { self.excuse } else { TURN };
        self.excuse = if alone { Nanos(self.excuse.0 * 2).min(LONGEST) } else { EXCUSE };
        self.state = State::Runs { at_least: now.plus(at_least) };
    }
}

#[cfg(test)]
mod tests;
