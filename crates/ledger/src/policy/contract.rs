//! What every policy of a class answers (DiscNice, 4.1 and 5.3).
//!
//! A policy is arithmetic behind the trait [`Policy`]: from what has passed, and the threshold, follows when the next
//! amount may pass. Mechanisms know the trait alone, so another policy changes none of them.

use discnice_units::{Moment, Nanos};

//= discnice/5.3-function
/// Decides how long an amount waits.
pub trait Policy {
    /// Over which time it must be told what has passed; zero if the frontier tells it all.
    fn looks_back(&self) -> Nanos;

    /// Age at which unused allowance is forgotten.
    fn forgets(&self) -> Nanos;

    /// Decides when `amount` units may pass.
    fn reserve(&self, past: Past, now: Moment, amount: u64) -> Reservation;

    /// When to ask again after a refusal.
    fn retry_at(&self, frontier: Moment, now: Moment) -> Moment;

    /// The frontier after `amount` more units turned out to have passed, which `past` has already.
    fn charge(&self, past: Past, now: Moment, amount: u64) -> Moment;

    /// The frontier after `amount` units turned out not to have passed.
    fn refund(&self, frontier: Moment, amount: u64) -> Moment;
}

/// What a policy knows of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// The moment at which everything charged so far is paid for.
    pub frontier: Moment,
    /// Units that passed in the time of [`Policy::looks_back`].
    pub passed: u64,
}

/// What a policy answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The amount may pass from this moment on; `None`: it is not reserved, ask again at [`Policy::retry_at`].
    pub start: Option<Moment>,
    /// The frontier behind it.
    pub frontier: Moment,
}
