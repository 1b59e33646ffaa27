//! The policy of a class, which the user chooses (DiscNice, 4.1 and 5.3).

use discnice_units::{Nanos, Rate};

use crate::policy::contract::Policy;
use crate::policy::pace::{self, Rule};
use crate::policy::sleep::{self, Sleep};

/// The policies. The numbers are kept in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The rate window as a frontier; see [`crate::policy::pace`].
    #[default]
    Window = 0,
    /// The sleep of B/R - N; see [`crate::policy::sleep`].
    Sleep = 1,
    /// A program of the user changes the rates, below the thresholds; it paces as the rate window does.
    Program = 2,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Window, Self::Sleep, Self::Program];

    /// The name on command lines and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Sleep => "sleep",
            Self::Program => "program",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The policy of this number; an unknown one is the rate window.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Sleep,
            2 => Self::Program,
            _ => Self::Window,
        }
    }
}

/// A policy and the window over which its threshold holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The policy.
    pub policy: Choice,
    /// What the user gave, in milliseconds; zero for the policy's own window.
    millis: u32,
    /// The shortest sleep in tenths of milliseconds; zero for the usual one.
    shortest: u16,
    /// The longest sleep in milliseconds; zero for the usual one, which depends on the rate.
    longest: u16,
}

/// Bounds of what can be given as the shortest sleep,
pub const SHORTEST_SLEEPS: (Nanos, Nanos) = (Nanos(100_000), Nanos::from_millis(100));
/// and of what can be given as the longest one.
pub const LONGEST_SLEEPS: (Nanos, Nanos) = (Nanos::from_millis(5), Nanos::from_millis(500));

/// A tenth of a millisecond.
const TENTH: u64 = 100_000;
/// Where the word of shared memory has the policy and the bounds of sleeps.
const POLICY_AT: u32 = 32;
const SHORTEST_AT: u32 = 40;
const LONGEST_AT: u32 = 52;
const BOUND: u64 = 0xfff;

/// Shortest window that can be given.
pub const SHORTEST_WINDOW: Nanos = Nanos::from_millis(100);
/// Longest one.
pub const LONGEST_WINDOW: Nanos = Nanos(60 * Nanos::SECOND.0);

impl Pace {
    /// The rate window of five seconds.
    pub const DEFAULT: Self = Self { policy: Choice::Window, millis: 0, shortest: 0, longest: 0 };

    /// Returns this with another policy.
    #[must_use]
    pub const fn with_policy(self, policy: Choice) -> Self {
        Self { policy, ..self }
    }

    /// Returns this with another window, in whole milliseconds; `None` for the policy's own.
    #[must_use]
    pub fn with_window(self, window: Option<Nanos>) -> Self {
        let millis = window.map_or(0, |window| window.0 / 1_000_000);
        Self { millis: u32::try_from(millis).unwrap_or(u32::MAX), ..self }
    }

    /// What the user gave.
    #[must_use]
    pub fn given_window(self) -> Option<Nanos> {
        (self.millis != 0).then(|| Nanos::from_millis(u64::from(self.millis)))
    }

    //= rate-windows/3.2-tuning
    /// Returns this with another shortest sleep, in tenths of milliseconds; `None` for the usual one.
    #[must_use]
    pub fn with_shortest_sleep(self, sleep: Option<Nanos>) -> Self {
        let tenths = sleep.map_or(0, |sleep| sleep.0 / TENTH);
        Self { shortest: u16::try_from(tenths).unwrap_or(u16::MAX), ..self }
    }

    /// Returns this with another longest sleep, in milliseconds; `None` for the usual one.
    #[must_use]
    pub fn with_longest_sleep(self, sleep: Option<Nanos>) -> Self {
        let millis = sleep.map_or(0, |sleep| sleep.0 / 1_000_000);
        Self { longest: u16::try_from(millis).unwrap_or(u16::MAX), ..self }
    }

    /// What the user gave as the shortest sleep; what cannot be given counts as not given.
    #[must_use]
    pub fn given_shortest_sleep(self) -> Option<Nanos> {
        let sleep = Nanos(u64::from(self.shortest) * TENTH);
        is_within(sleep, SHORTEST_SLEEPS).then_some(sleep)
    }

    /// What the user gave as the longest sleep; what cannot be given counts as not given.
    #[must_use]
    pub fn given_longest_sleep(self) -> Option<Nanos> {
        let sleep = Nanos::from_millis(u64::from(self.longest));
        is_within(sleep, LONGEST_SLEEPS).then_some(sleep)
    }

    /// A wait that is shorter than this is put off; the debt stays.
    #[must_use]
    pub fn shortest_sleep(self) -> Nanos {
        self.given_shortest_sleep().unwrap_or(pace::SHORTEST_SLEEP)
    }

    /// The rate window at a rate.
    #[must_use]
    pub fn rule(self, rate: Rate) -> Rule {
        Rule { rate, window: self.window(), longest: self.given_longest_sleep() }
    }

    /// The longest window that the policy can have.
    #[must_use]
    pub const fn longest(self) -> Nanos {
        match self.policy {
            Choice::Sleep => sleep::LONGEST,
            Choice::Window | Choice::Program => LONGEST_WINDOW,
        }
    }

    /// The window that holds; one that could not be given counts as not given.
    #[must_use]
    pub fn window(self) -> Nanos {
        let usual = match self.policy {
            Choice::Sleep => sleep::WINDOW,
            Choice::Window | Choice::Program => pace::WINDOW,
        };
        self.given_window().filter(|window| self.is_possible(*window)).unwrap_or(usual)
    }

    /// Returns true if the policy can have this window.
    #[must_use]
    pub fn is_possible(self, window: Nanos) -> bool {
        (SHORTEST_WINDOW..=self.longest()).contains(&window)
    }

    /// Packs it into one word of shared memory.
    #[must_use]
    pub const fn to_word(self) -> u64 {
        (self.policy as u64) << POLICY_AT
            | (self.shortest as u64 & BOUND) << SHORTEST_AT
            | (self.longest as u64 & BOUND) << LONGEST_AT
            | self.millis as u64
    }

    /// Unpacks it from that word; every value is valid.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            policy: Choice::from_number((word >> POLICY_AT) as u8 as u32),
            millis: word as u32,
            shortest: (word >> SHORTEST_AT & BOUND) as u16,
            longest: (word >> LONGEST_AT & BOUND) as u16,
        }
    }

    //= discnice/4.1-own-policy
    /// The policy, for a threshold.
    #[must_use]
    pub fn at(self, rate: Rate) -> Chosen {
        let window = self.window();
        match self.policy {
            Choice::Sleep => Chosen::Sleep(Sleep { rate, window }),
            Choice::Window | Choice::Program => Chosen::Window(self.rule(rate)),
        }
    }
}

/// Whether a sleep is one that can be given.
fn is_within(sleep: Nanos, (least, most): (Nanos, Nanos)) -> bool {
    (least..=most).contains(&sleep)
}

/// A policy with its threshold.
#[derive(Debug, Clone, Copy)]
pub enum Chosen {
    /// The rate window.
    Window(Rule),
    /// The sleep of B/R - N.
    Sleep(Sleep),
}

impl Chosen {
    /// The threshold.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        match self {
            Self::Window(rule) => rule.rate,
            Self::Sleep(sleep) => sleep.rate,
        }
    }
}

impl core::ops::Deref for Chosen {
    type Target = dyn Policy;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Window(rule) => rule,
            Self::Sleep(sleep) => sleep,
        }
    }
}

#[cfg(test)]
mod tests;
