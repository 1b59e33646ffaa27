//! What the user's own policy says: rates, and until when.
//!
//! A program of the user is asked by policyd, never by a call. Its answer lies here until it ends, below the class's
//! thresholds; past the end those hold alone. So a program that hangs, or is killed, costs nothing but its advice.

use discnice_units::{Moment, Rate};

use crate::claim::Claim;
use crate::policy::Resource;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// The words of an answer.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Advice {
    /// When it ends; zero without one.
    until: AtomicU64,
    /// Units a second by [`Resource`]; zero for no advice.
    rates: [AtomicU64; Resource::COUNT],
    /// How the program is, in the numbers of [`Health`].
    health: AtomicU32,
    /// The process that asks the program.
    asker: Claim,
}

/// How the user's program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It was not asked yet.
    Unasked = 0,
    /// It answers.
    Answers = 1,
    /// It cannot be started, or ended.
    Ended = 2,
    /// It does not answer in time.
    Silent = 3,
    /// It answers what is none.
    Wrong = 4,
}

impl Health {
    const ALL: [Self; 5] = [Self::Unasked, Self::Answers, Self::Ended, Self::Silent, Self::Wrong];
}

impl Advice {
    /// The most that the answer allows a resource now; unlimited where it says nothing.
    #[must_use]
    pub fn rate(&self, now: Moment, resource: Resource) -> Rate {
        if now.0 >= self.until.load(Ordering::Acquire) {
            return Rate::UNLIMITED;
        }
        match self.rates[resource as usize].load(Ordering::Relaxed) {
            0 => Rate::UNLIMITED,
            rate => Rate::per_second(rate),
        }
    }

    /// When the answer ends; zero without one.
    #[must_use]
    pub fn until(&self) -> Moment {
        Moment(self.until.load(Ordering::Relaxed))
    }

    /// Takes an answer that has ended away; true for the one that did.
    #[inline]
    pub(crate) fn expire(&self, now: Moment) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        let relaxed = Ordering::Relaxed;
        until != 0
            && now.0 >= until
            && self.until.compare_exchange(until, 0, relaxed, relaxed).is_ok()
    }

    /// Writes an answer. One that is stopped in between leaves rates of the old and the new one, each until the earlier
    /// end of both.
    pub(crate) fn write(&self, rates: &[Rate; Resource::COUNT], until: Moment) {
        self.until.fetch_min(until.0, Ordering::Release);
        for (word, rate) in self.rates.iter().zip(rates) {
            let rate = if rate.is_unlimited() { 0 } else { rate.get() };
            word.store(rate, Ordering::Relaxed);
        }
        self.until.store(until.0, Ordering::Release);
    }

    /// How the program is.
    #[must_use]
    pub fn health(&self) -> Health {
        let number = self.health.load(Ordering::Relaxed);
        Health::ALL.into_iter().find(|one| *one as u32 == number).unwrap_or(Health::Unasked)
    }

    /// Notes how the program is.
    pub fn note_health(&self, health: Health) {
        self.health.store(health as u32, Ordering::Relaxed);
    }

    /// Becomes the process that asks, unless another living process does.
    pub fn claim(&self, process: u32, lives: impl Fn(u32) -> bool) -> bool {
        self.asker.take(process, lives)
    }

    /// Asks no longer.
    pub fn release(&self, process: u32) {
        self.asker.release(process);
    }
}
