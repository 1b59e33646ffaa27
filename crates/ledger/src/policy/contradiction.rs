//! Thresholds that contradict each other, in words.

use core::fmt;

use discnice_units::{Bytes, Nanos, Rate};

use crate::policy::choice::{Pace, SHORTEST_WINDOW};
use crate::policy::resource::Resource;

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
