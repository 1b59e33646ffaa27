//! Thresholds that contradict each other: how they are found, and what users are told.

use core::fmt;

use discnice_units::{Bytes, Nanos, Rate};

use crate::policy::choice::{Pace, SHORTEST_WINDOW};
use crate::policy::limits::Limits;
use crate::policy::resource::{Resource, Resources};

/// What the least rate is compared to, as any of them would keep the class below it.
pub(super) const LEAST_OF: [Resource; 3] = [Resource::Total, Resource::Read, Resource::Write];

/// Thresholds that can never take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    /// A part is allowed more than the whole.
    Part {
        /// The part.
        part: Resource,
        /// What it is allowed.
        rate: Rate,
        /// The whole.
        whole: Resource,
        /// What that is allowed.
        most: Rate,
    },
    /// The low threshold of memory is above the high one.
    Memory {
        /// The low one.
        low: Bytes,
        /// The high one.
        high: Bytes,
    },
    /// The least rate is above a limit.
    Least {
        /// The least rate.
        least: Rate,
        /// What is limited.
        limit: Resource,
        /// What that is allowed.
        most: Rate,
    },
    /// The shortest sleep is longer than the longest.
    Sleeps {
        /// The shortest one.
        shortest: Nanos,
        /// The longest one.
        longest: Nanos,
    },
    /// Children are apart, and what is limited cannot be held from outside.
    PerChild {
        /// What is limited.
        limit: Resource,
    },
    /// The policy cannot have this window.
    Window {
        /// The window.
        window: Nanos,
        /// The policy.
        pace: Pace,
    },
}

impl Limits {
    /// Refuses thresholds that can never take effect.
    ///
    /// # Errors
    /// Which part is allowed more than the whole, that the least rate is above a limit, or the shortest
    /// sleep above the longest, that memory's low threshold
    /// is above the high one, or that the policy cannot have the window.
    pub fn check(&self) -> Result<(), Contradiction> {
        for part in Resource::ALL {
            let Some(whole) = part.whole() else { continue };
            let (rate, most) = (self.rate(part), self.rate(whole));
            if !rate.is_unlimited() && rate > most {
                return Err(Contradiction::Part { part, rate, whole, most });
            }
        }
        if let Some(least) = self.at_least()
            && let Some(limit) = LEAST_OF.into_iter().find(|one| least > self.rate(*one))
        {
            return Err(Contradiction::Least { least, limit, most: self.rate(limit) });
        }
        if let Some(window) = self.pace().given_window()
            && !self.pace().is_possible(window)
        {
            return Err(Contradiction::Window { window, pace: self.pace() });
        }
        if let (Some(shortest), Some(longest)) =
            (self.pace().given_shortest_sleep(), self.pace().given_longest_sleep())
            && shortest > longest
        {
            return Err(Contradiction::Sleeps { shortest, longest });
        }
        if self.per_child()
            && let Some(limit) = self.beyond(Resources::DISK.and(Resources::NETWORK))
        {
            return Err(Contradiction::PerChild { limit });
        }
        match (self.memory().low(), self.memory().high()) {
            (Some(low), Some(high)) if self.memory().contradicts_itself() => {
                Err(Contradiction::Memory { low, high })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, rate, whole, most) = match self {
            Self::Part { part, rate, whole, most } => (part, rate, whole, most),
            Self::Least { least, limit, most } => {
                let limit = limit.option();
                return write!(
                    f,
                    "--at-least {least} is more than {limit} {most} allows; lower it or raise {limit}"
                );
            }
            Self::Sleeps { shortest, longest } => {
                return write!(
                    f,
                    "--shortest-sleep {shortest} is more than --longest-sleep {longest}; lower it or raise the other"
                );
            }
            Self::PerChild { limit } => {
                let limit = limit.option();
                return write!(
                    f,
                    "--per-child limits disk and network traffic only; leave out {limit}"
                );
            }
            Self::Memory { low, high } => {
                return write!(
                    f,
                    "--memory-low {low} is more than --memory-high {high}; lower it or raise the other"
                );
            }
            Self::Window { window, pace } => {
                return write!(
                    f,
                    "--window {} is not possible with --policy {}; give {} to {} ms",
                    window,
                    pace.policy.name(),
                    SHORTEST_WINDOW.0 / 1_000_000,
                    pace.longest().0 / 1_000_000
                );
            }
        };
        let (part, whole) = (part.option(), whole.option());
        write!(f, "{part} {rate} is more than {whole} {most} allows; lower {part} or raise {whole}")
    }
}

impl core::error::Error for Contradiction {}
