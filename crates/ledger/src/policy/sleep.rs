//! The policy of the paper's prototype (DiscNice, 5.3): sleep for B/R - N.
//!
//! B is what passed in the last N seconds, N is 1. An amount passes at once while that keeps B at or below R N, whatever
//! passed a moment ago; else it sleeps until B/(N + sleep) is R. So a job that does little at a time never
//! waits, and one that is busy moves a second's worth at once and then waits for the rest of that second: smooth over
//! seconds, in bursts below. The rate window ([`crate::policy::pace`]) keeps almost no unused allowance instead.
//!
//! B comes from the record of the last five seconds, into which an amount goes when it is reserved. What turns
//! out to have passed unasked (a flush of dirty pages, a page fault) may be more than a window's worth; its sleep
//! is kept in the frontier, so that the average stays below R, as the paper says, although B forgets it after N.

use discnice_units::{Moment, Nanos, Rate};

use crate::policy::contract::{Past, Policy, Reservation};

//= discnice/5.3-n
/// N of the paper's prototype.
pub const WINDOW: Nanos = Nanos::SECOND;

/// Longest N: what the record covers, less than its oldest slot.
pub const LONGEST: Nanos = Nanos::from_millis(4900);

/// The policy, with a threshold R and a window N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// R.
    pub rate: Rate,
    /// N.
    pub window: Nanos,
}

impl Sleep {
    //= discnice/5.3-function
    /// Returns B/R - N, or zero where B is within the window.
    const fn sleep(&self, passed: u64) -> Nanos {
        self.rate.time_for(passed).minus(self.window)
    }

    /// The frontier where nothing is owed. It must not be zero, which means that nothing has passed for long.
    fn no_later(past: Past, now: Moment) -> Moment {
        past.frontier.max(now)
    }
}

impl Policy for Sleep {
    fn looks_back(&self) -> Nanos {
        self.window
    }

    fn forgets(&self) -> Nanos {
        self.window
    }

    fn reserve(&self, past: Past, now: Moment, amount: u64) -> Reservation {
        if past.frontier > now {
            return Reservation { start: None, frontier: past.frontier };
        }
        let sleep = self.sleep(past.passed.saturating_add(amount));
        let frontier = Self::no_later(past, now.plus(sleep));
        // One amount that is larger than the window passes alone, and is slept for afterwards.
        let passes = sleep == Nanos(0) || past.passed == 0;
        if passes {
            return Reservation { start: Some(now), frontier };
        }
        // By then the window is empty.
        let frontier = frontier.min(now.plus(self.window));
        Reservation { start: None, frontier }
    }

    fn retry_at(&self, frontier: Moment, now: Moment) -> Moment {
        frontier.max(now)
    }

    fn charge(&self, past: Past, now: Moment, amount: u64) -> Moment {
        if past.frontier > now {
            return past.frontier.plus(self.rate.time_for(amount));
        }
        Self::no_later(past, now.plus(self.sleep(past.passed)))
    }

    fn refund(&self, frontier: Moment, amount: u64) -> Moment {
        frontier.minus(self.rate.time_for(amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLEEP: Sleep = Sleep { rate: Rate::per_second(1 << 20), window: WINDOW };
    const START: Moment = Moment(100 * Nanos::SECOND.0);

    /// Lets a stream of (gap, amount) pass and returns (moment, amount) for each.
    fn simulate(work: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut now, mut frontier) = (START, Moment::FIRST);
        let mut passed: Vec<(u64, u64)> = Vec::new();
        for &(gap, amount) in work {
            now = now.plus(Nanos(gap));
            loop {
                let within = |one: &&(u64, u64)| one.0 + SLEEP.window.0 > now.0;
                let recent = passed.iter().rev().take_while(within).map(|one| one.1).sum();
                let asked = SLEEP.reserve(Past { frontier, passed: recent }, now, amount);
                frontier = asked.frontier;
                if asked.start.is_some() {
                    break;
                }
                now = SLEEP.retry_at(frontier, now).max(now.plus(Nanos::from_millis(1)));
            }
            passed.push((now.0, amount));
        }
        passed
    }

    proptest! {
        //= discnice/5.3-function
        //= discnice/5.3-n
        #[test]
        fn no_second_exceeds_the_threshold(
            work in prop::collection::vec((0u64..100_000_000, 1u64..200_000), 1..200)
        ) {
            let passed = simulate(&work);
            for &(from, _) in &passed {
                let within = passed.iter().filter(|one| (from..from + WINDOW.0).contains(&one.0));
                prop_assert!(within.map(|one| one.1).sum::<u64>() <= SLEEP.rate.get());
            }
        }

        #[test]
        fn arithmetic_never_overflows(
            frontier: u64, passed: u64, now: u64, amount: u64, rate: u64, window: u64
        ) {
            let sleep = Sleep { rate: Rate::per_second(rate), window: Nanos(window) };
            let (past, now) = (Past { frontier: Moment(frontier), passed }, Moment(now));
            let asked = sleep.reserve(past, now, amount);
            prop_assert!(asked.start.is_none_or(|start| start == now));
            let _ = sleep.charge(past, now, amount);
            let _ = sleep.refund(past.frontier, amount);
        }
    }

    #[test]
    fn a_busy_job_gets_its_rate_in_bursts() {
        let passed = simulate(&[(0, 1 << 16); 161]);
        let seconds = (passed.last().unwrap().0 - passed[0].0) as f64 / 1e9;
        assert!((9.5..11.0).contains(&seconds), "10 MiB at 1 MiB/s took {seconds} s");
        assert_eq!(passed[15].0, passed[0].0, "a second's worth at once");
        assert!(passed[16].0 > passed[0].0, "and no more");
    }

    #[test]
    fn small_work_never_waits_where_the_rate_window_has_it_wait() {
        let work = [(0, 300_000), (1_000_000, 300_000), (1_000_000, 300_000)];
        let passed = simulate(&work);
        assert_eq!(passed[2].0 - passed[0].0, 2_000_000);
        let rule = crate::policy::Pace::DEFAULT.rule(SLEEP.rate);
        let first = rule.reserve(Past { frontier: Moment::FIRST, passed: 0 }, START, 300_000);
        let past = Past { frontier: first.frontier, passed: 0 };
        let second = rule.reserve(past, START.plus(Nanos::from_millis(1)), 300_000);
        assert!(second.start.unwrap() > START.plus(Nanos::from_millis(100)));
    }

    //= discnice/5.3-after-flush
    #[test]
    fn what_a_flush_wrote_is_slept_for_in_full() {
        let flushed = 10 << 20;
        let past = Past { frontier: Moment::FIRST, passed: flushed };
        let frontier = SLEEP.charge(past, START, flushed);
        assert_eq!(frontier.since(START), Nanos(9 * Nanos::SECOND.0), "B/R - N");
        let later = START.plus(Nanos(8 * Nanos::SECOND.0));
        let forgotten = Past { frontier, passed: 0 };
        assert_eq!(SLEEP.reserve(forgotten, later, 1).start, None);
        assert_eq!(SLEEP.reserve(forgotten, frontier, 1).start, Some(frontier));
    }
}
