//! The suspension time calculator (paper section 4.1), and when to probe earlier.
//!
//! Each poor judgment doubles the suspension time up to a cap, a good one resets it. Beyond the
//! paper, a suspension may end early when the machine went quiet. Such a hint may be wrong (the
//! contended resource may be one that no signal shows), so the hints have a back-off of their
//! own: each early probe that finds contention doubles the time before the next may be made. A
//! machine with signals that always lie is thus left with the paper's back-off.

use discnice_units::{Moment, Nanos};

use crate::model::comparator::Judgment;
use crate::model::config::Config;

/// Four doublings.
const CONFIRMED_GROWTH: u64 = 16;

/// A suspension: until when at the latest, and from when a quiet machine may end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspend {
    /// End of the suspension.
    pub until: Moment,
    /// From this moment on, the job may run if the machine is quiet; `None` under the paper's
    /// plain back-off.
    pub early_from: Option<Moment>,
}

/// The back-off of one thread.
#[derive(Debug, Clone)]
pub struct Suspension {
    first: Nanos,
    cap: Nanos,
    next: Nanos,
    first_early: Option<Nanos>,
    next_early: Nanos,
    probing_early: bool,
}

impl Suspension {
    /// The back-off that `config` describes, in its initial state.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            first: config.suspension,
            cap: config.suspension_cap,
            next: config.suspension,
            first_early: config.early_probe,
            next_early: config.early_probe.unwrap_or(config.suspension_cap),
            probing_early: false,
        }
    }

    //= ms-manners/4.1-suspend
    /// Returns what follows from `judgment` at the moment `at`: `Some` when the thread must step
    /// aside.
    ///
    /// `confirmed` tells that the signals show other work. Such a poor judgment counts as five: the
    /// end of that work will be seen, so there is no need to find it by probing.
    pub fn judged(&mut self, judgment: Judgment, at: Moment, confirmed: bool) -> Option<Suspend> {
        match judgment {
            Judgment::Indeterminate => None,
            Judgment::Good => {
                self.next = self.first;
                self.next_early = self.first_early.unwrap_or(self.cap);
                self.probing_early = false;
                None
            }
            Judgment::Poor => Some(self.step_aside(at, confirmed)),
        }
    }

    //= ms-manners/4.1-doubling
    fn step_aside(&mut self, at: Moment, confirmed: bool) -> Suspend {
        if self.probing_early {
            self.next_early = twice(self.next_early).min(self.cap);
        }
        if confirmed && self.first_early.is_some() {
            self.next = Nanos(self.next.0.saturating_mul(CONFIRMED_GROWTH)).min(self.cap);
        }
        let until = at.plus(self.next);
        self.next = twice(self.next).min(self.cap);
        let early_from = self.first_early.map(|_| at.plus(self.next_early).min(until));
        self.probing_early = false;
        Suspend { until, early_from }
    }

    //= ms-manners/11-schemes
    /// Tells that the thread resumed before its time because the machine was quiet.
    pub fn resumed_early(&mut self) {
        self.probing_early = true;
    }
}

fn twice(time: Nanos) -> Nanos {
    time.plus(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Moment {
        Moment(count * Nanos::SECOND.0)
    }

    //= ms-manners/4.1-suspend
    //= ms-manners/4.1-doubling
    //= ms-manners/4.1-cap
    //= ms-manners/4.2-indeterminate
    #[test]
    fn doubles_to_the_cap_and_resets() {
        let mut suspension = Suspension::new(&Config::paper());
        let mut lengths = || suspension.judged(Judgment::Poor, Moment::FIRST, false).unwrap().until;
        let seen: Vec<_> = (0..10).map(|_| lengths().0 / Nanos::SECOND.0).collect();
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256]);
        assert_eq!(suspension.judged(Judgment::Indeterminate, Moment::FIRST, false), None);
        assert_eq!(
            suspension.judged(Judgment::Poor, Moment::FIRST, false).unwrap().until,
            seconds(256)
        );
        assert_eq!(suspension.judged(Judgment::Good, Moment::FIRST, false), None);
        let again = suspension.judged(Judgment::Poor, seconds(5), false).unwrap();
        assert_eq!(again, Suspend { until: seconds(6), early_from: None });
    }

    //= ms-manners/11-schemes
    #[test]
    fn signals_that_lie_are_believed_ever_less() {
        let mut suspension = Suspension::new(&Config::default());
        let mut at = Moment::FIRST;
        let mut waits = Vec::new();
        for _ in 0..12 {
            let early = suspension.judged(Judgment::Poor, at, false).unwrap().early_from.unwrap();
            waits.push(early.since(at).0 / 1_000_000);
            at = early;
            suspension.resumed_early();
        }
        assert_eq!(waits[..4], [250, 500, 1000, 2000]);
        assert_eq!(waits[11], 256_000);
    }

    //= ms-manners/11-schemes
    #[test]
    fn a_load_in_sight_is_waited_out_with_fewer_probes() {
        let mut suspension = Suspension::new(&Config::default());
        let mut length = || suspension.judged(Judgment::Poor, Moment::FIRST, true).unwrap().until;
        assert_eq!([length(), length(), length(), length()], [16, 256, 256, 256].map(seconds));
    }

    #[test]
    fn a_probe_on_time_keeps_the_trust_in_signals() {
        let mut suspension = Suspension::new(&Config::default());
        for _ in 0..5 {
            let suspend = suspension.judged(Judgment::Poor, Moment::FIRST, false).unwrap();
            assert_eq!(suspend.early_from, Some(Moment::FIRST.plus(Nanos::from_millis(250))));
        }
    }
}
