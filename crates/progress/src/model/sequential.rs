//! A sequential test beside the sign test: a bet at each testpoint that the job has become slower.
//!
//! The sign test knows of a testpoint only whether it lagged, so that it needs five of them however slow
//! they were. This one also ranks each among the undisturbed ones before: of those that took longer than all
//! of the last five hundred, two suffice. No distribution is assumed, as only ranks count (MS Manners, section
//! 11, asks for a parametric test for this).
//!
//! Each bet multiplies its stake by a factor of mean one at most while the job is not disturbed, and gets one
//! new unit to stake at each testpoint (the Shiryaev-Roberts form of an e-detector; Shin, Ramdas and Rinaldo
//! 2024). So the stakes together grow by one a testpoint on average, and if an alarm is raised when they reach
//! `every`, false alarms are at least `every` testpoints apart on average. Bets on ranks find large slowdowns soon,
//! bets on signs small ones that last; the stakes are divided among both.

use std::collections::VecDeque;

/// Undisturbed testpoints among which one is ranked.
const REFERENCE: usize = 512;
/// So many of them suffice to rank others.
const ENOUGH: usize = 100;
/// Testpoints that have to pass without an alarm until one counts as undisturbed, if nothing says so before.
const LAG: usize = 64;
/// Bets on ranks: the exponents e of the factors e · p^(e - 1), p being the share of undisturbed
/// testpoints that took at least as long. Small ones win most by the longest.
const RANKS: [f64; 3] = [0.1, 0.3, 0.6];
/// Bets on signs: the part of the stake that is won by a testpoint that lags, and lost by one that does not.
const SIGNS: [f64; 3] = [0.15, 0.35, 0.6];

//= ms-manners/11-parametric
/// Raises an alarm when a job has become slower than its target.
#[derive(Debug, Clone)]
pub struct SlowdownDetector {
    /// Slownesses of undisturbed testpoints, a ring.
    reference: Vec<f32>,
    next: usize,
    /// The latest, which may be the beginning of a disturbance.
    latest: VecDeque<f32>,
    ranks: [f64; RANKS.len()],
    signs: [f64; SIGNS.len()],
}

impl Default for SlowdownDetector {
    fn default() -> Self {
        Self {
            reference: Vec::new(),
            next: 0,
            latest: VecDeque::new(),
            ranks: [0.0; RANKS.len()],
            signs: [0.0; SIGNS.len()],
        }
    }
}

impl SlowdownDetector {
    /// Takes a testpoint that took `slowness` times its target; returns true if the job has become more than
    /// `slack` times slower than it was undisturbed. Where it has not, that is the case once in `every`
    /// testpoints at most, on average. An alarm starts anew.
    pub fn observe(&mut self, slowness: f64, slack: f64, every: f64) -> bool {
        if !slowness.is_finite() {
            return false;
        }
        let forgiven = (slowness / slack) as f32;
        let longer = self.reference.iter().filter(|&&known| known >= forgiven).count();
        let p = (longer + 1) as f64 / (self.reference.len() + 1) as f64;
        for (stake, exponent) in self.ranks.iter_mut().zip(RANKS) {
            *stake = (*stake + 1.0) * exponent * p.powf(exponent - 1.0);
        }
        let lags = slowness > slack;
        for (stake, part) in self.signs.iter_mut().zip(SIGNS) {
            *stake = (*stake + 1.0) * if lags { 1.0 + part } else { 1.0 - part };
        }
        if self.stake() >= every {
            self.reset();
            return true;
        }
        self.latest.push_back(slowness as f32);
        if self.latest.len() > LAG
            && let Some(undisturbed) = self.latest.pop_front()
        {
            self.remember(undisturbed);
        }
        false
    }

    /// Returns true if enough undisturbed testpoints are known to rank others among them. Before that, only
    /// slowdowns that last are found.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reference.len() >= ENOUGH
    }

    /// The latest testpoints were undisturbed: progress was judged good.
    pub fn undisturbed(&mut self) {
        while let Some(slowness) = self.latest.pop_front() {
            self.remember(slowness);
        }
    }

    /// All stakes, each bet's for its part.
    fn stake(&self) -> f64 {
        let all: f64 = self.ranks.iter().chain(&self.signs).sum();
        all / (RANKS.len() + SIGNS.len()) as f64
    }

    fn remember(&mut self, slowness: f32) {
        if self.reference.len() < REFERENCE {
            self.reference.push(slowness);
        } else {
            self.reference[self.next] = slowness;
        }
        self.next = (self.next + 1) % REFERENCE;
    }

    /// Forgets all stakes, and the latest testpoints: the job steps aside, or was away.
    pub fn reset(&mut self) {
        self.latest.clear();
        self.ranks = [0.0; RANKS.len()];
        self.signs = [0.0; SIGNS.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_extreme_testpoints_suffice() {
        let mut detector = SlowdownDetector::default();
        for i in 0..2000 {
            assert!(!detector.observe(0.9 + f64::from(i % 7) * 0.03, 1.1, 200.0), "testpoint {i}");
        }
        assert!(!detector.observe(4.0, 1.1, 200.0));
        assert!(detector.observe(4.0, 1.1, 200.0));
        assert!(!detector.observe(4.0, 1.1, 200.0), "it starts anew");
    }

    #[test]
    fn a_disturbance_is_not_remembered_as_undisturbed() {
        let mut detector = SlowdownDetector::default();
        for _ in 0..1000 {
            detector.observe(1.0, 1.1, 1e9);
        }
        let found = |detector: &mut SlowdownDetector| {
            (1..).find(|_| detector.observe(3.0, 1.1, 1e4)).unwrap_or(0)
        };
        let first = found(&mut detector);
        for _ in 0..20 {
            assert_eq!(found(&mut detector).max(first), found(&mut detector).max(first));
        }
        assert!(detector.reference.iter().all(|&known| known < 1.5));
    }

    #[test]
    fn any_number_is_survived() {
        let mut detector = SlowdownDetector::default();
        for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            detector.observe(bad, 1.1, 100.0);
        }
        detector.reset();
        assert!(!detector.observe(1.0, 1.1, 100.0));
    }
}
