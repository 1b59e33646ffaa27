//! Which thread of low importance may run (paper sections 4.5 and 7.1).
//!
//! Regulated threads that ran side by side would slow each other and be suspended for it. So one
//! runs at a time, until its next testpoint (time-multiplex isolation). Beyond the paper, threads
//! that declare disjoint resources may run side by side. Execution time is shared in proportion to
//! priorities by decay-usage scheduling: of the threads that wait, the one goes first that ran
//! least for its priority lately.
//!
//! The functions here look at the table of all threads and say what may change; they keep no
//! state. A process that holds the table may thus decide for all, and none depends on one arbiter.

use discnice_units::{Moment, Nanos};

/// The resources that a thread uses, one bit each; what the bits mean is the jobs' convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredResources(pub u64);

impl DeclaredResources {
    /// Undeclared: shares something with every thread.
    pub const ALL: Self = Self(u64::MAX);

    //= ms-manners/4.5-overlapping
    /// Returns true if two threads must not run side by side.
    #[must_use]
    pub fn conflicts(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Suspended, or gone: neither runs nor wants to.
    Away,
    /// Ready since this moment.
    Waiting(Moment),
    /// Has the permission to run since this moment.
    Running(Moment),
}

/// One thread as the superintendent sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thread {
    /// What it is doing.
    pub state: State,
    /// Priority: its share relative to the others'; above zero.
    pub weight: f64,
    /// Seconds of permission used lately, decayed.
    pub usage: f64,
    /// What it uses.
    pub resources: DeclaredResources,
}

impl Thread {
    //= ms-manners/4.5-fair
    fn used(&self) -> f64 {
        self.usage / self.weight
    }
}

/// Time in which usage loses half of its meaning: long against a round of a hundred threads. What a
/// thread used loses some of it until its next turn, and so more, the rarer its turns are: with 600 s,
/// the least of a hundred simulated threads got 5 % too much.
pub const USAGE_HALF_LIFE: Nanos = Nanos(3600 * Nanos::SECOND.0);

//= ms-manners/7.1-decay
/// The factor by which usage decays in `elapsed`.
#[must_use]
pub fn usage_decay(elapsed: Nanos) -> f64 {
    (-elapsed.as_secs_f64() / USAGE_HALF_LIFE.as_secs_f64()).exp2()
}

//= ms-manners/4.5-one-at-a-time
/// Returns the thread that gets the permission next, as a position in `threads`; `None` while all
/// that wait must go on waiting. Call again after granting: several may run side by side.
///
/// A thread that has been running for longer than `hung` is presumed hung and keeps no other
/// waiting.
#[must_use]
pub fn next_to_run(threads: &[Thread], now: Moment, hung: Nanos) -> Option<usize> {
    let mut taken = threads
        .iter()
        .filter(|thread| matches!(thread.state, State::Running(since) if now.since(since) <= hung))
        .fold(DeclaredResources(0), |sum, thread| sum.and(thread.resources));
    let mut waiting: Vec<(f64, Moment, usize)> = threads
        .iter()
        .enumerate()
        .filter_map(|(i, thread)| match thread.state {
            State::Waiting(since) => Some((thread.used(), since, i)),
            _ => None,
        })
        .collect();
    waiting.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    for (_, _, i) in waiting {
        if !threads[i].resources.conflicts(taken) {
            return Some(i);
        }
        // No thread further back may take what the first in line still misses, or pairs of narrow
        // threads could keep a wide one waiting for ever.
        taken = taken.and(threads[i].resources);
    }
    None
}

/// Returns the usage with which `entering`, a new thread or one that was away, begins to wait: at
/// least that of the least served thread present, so that it neither starves the others nor is
/// starved. While it was away it wanted nothing that it could claim now. If no thread is present,
/// it counts as having run as much as any, so that it claims nothing from those that return after
/// it, either.
#[must_use]
pub fn usage_at_entry(threads: &[Thread], entering: &Thread) -> f64 {
    let present = threads.iter().filter(|thread| thread.state != State::Away);
    let least = present.map(Thread::used).min_by(f64::total_cmp);
    let most = || threads.iter().map(Thread::used).max_by(f64::total_cmp);
    f64::max(least.or_else(most).unwrap_or(0.0) * entering.weight, entering.usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUNG: Nanos = Nanos(10 * Nanos::SECOND.0);

    fn thread(state: State, weight: f64, resources: u64) -> Thread {
        Thread { state, weight, usage: 0.0, resources: DeclaredResources(resources) }
    }

    /// Runs `threads` for `slices` of 100 ms and returns the share of each.
    fn shares(threads: &mut [Thread], slices: u64) -> Vec<f64> {
        let mut ran = vec![0.0; threads.len()];
        for slice in 0..slices {
            let now = Moment::FIRST.plus(Nanos::from_millis(slice * 100));
            let i = next_to_run(threads, now, HUNG).expect("somebody waits");
            ran[i] += 1.0;
            threads[i].usage += 0.1;
            threads[i].state = State::Waiting(now);
            let decay = usage_decay(Nanos::from_millis(100));
            threads.iter_mut().for_each(|thread| thread.usage *= decay);
        }
        ran.iter().map(|count| count / slices as f64).collect()
    }

    //= ms-manners/4.5-fair
    #[test]
    fn shares_follow_priorities() {
        for count in [2usize, 10, 100] {
            let mut threads: Vec<_> = (0..count)
                .map(|i| thread(State::Waiting(Moment::FIRST), 1.0 + (i % 3) as f64, u64::MAX))
                .collect();
            let total: f64 = threads.iter().map(|t| t.weight).sum();
            let weights: Vec<f64> = threads.iter().map(|t| t.weight).collect();
            for (share, weight) in shares(&mut threads, 50_000).iter().zip(weights) {
                let ratio = share * total / weight;
                assert!((0.95..1.05).contains(&ratio), "{count} threads: {ratio}");
            }
        }
    }

    //= ms-manners/4.5-one-at-a-time
    //= ms-manners/4.5-overlapping
    #[test]
    fn one_at_a_time_unless_disjoint() {
        let waiting = State::Waiting(Moment::FIRST);
        let mut threads = [
            thread(State::Running(Moment::FIRST), 1.0, 1),
            thread(waiting, 1.0, 1),
            thread(waiting, 1.0, 2),
        ];
        assert_eq!(next_to_run(&threads, Moment(1), HUNG), Some(2));
        threads[2].state = State::Running(Moment(1));
        assert_eq!(next_to_run(&threads, Moment(2), HUNG), None);
    }

    #[test]
    fn a_wide_thread_is_not_starved_by_narrow_ones() {
        let mut threads = [
            thread(State::Running(Moment::FIRST), 1.0, 1),
            thread(State::Waiting(Moment::FIRST), 1.0, u64::MAX),
            thread(State::Waiting(Moment::FIRST), 1.0, 2),
        ];
        threads[2].usage = 1.0;
        assert_eq!(next_to_run(&threads, Moment(1), HUNG), None);
    }

    //= ms-manners/7.1-hung
    #[test]
    fn hung_threads_keep_no_other_waiting() {
        let late = Moment::FIRST.plus(HUNG);
        let threads =
            [thread(State::Running(Moment::FIRST), 1.0, 1), thread(State::Waiting(late), 1.0, 1)];
        assert_eq!(next_to_run(&threads, late, HUNG), None);
        assert_eq!(next_to_run(&threads, late.plus(Nanos(1)), HUNG), Some(1));
    }

    //= ms-manners/7.1-decay
    #[test]
    fn usage_loses_its_meaning() {
        assert!((usage_decay(USAGE_HALF_LIFE) - 0.5).abs() < 1e-12);
        // What was used yesterday claims nothing today.
        let mut threads = [
            thread(State::Waiting(Moment::FIRST), 100.0, u64::MAX),
            thread(State::Waiting(Moment::FIRST), 100.0, u64::MAX),
        ];
        let day = Nanos(24 * 3600 * Nanos::SECOND.0);
        threads[0].usage = 8.0 * 3600.0 * usage_decay(day);
        threads[1].usage = 1.0;
        assert_eq!(next_to_run(&threads, Moment::FIRST.plus(day), HUNG), Some(0));
    }

    #[test]
    fn a_thread_enters_beside_the_least_served() {
        let mut threads = [thread(State::Waiting(Moment::FIRST), 2.0, 1); 2];
        threads[0].usage = 8.0;
        threads[1].usage = 6.0;
        let enters = |usage| Thread { usage, ..thread(State::Away, 1.0, 1) };
        assert!((usage_at_entry(&threads, &enters(0.0)) - 3.0).abs() < 1e-12);
        assert!((usage_at_entry(&threads, &enters(5.0)) - 5.0).abs() < 1e-12);
        threads.iter_mut().for_each(|thread| thread.state = State::Away);
        assert!((usage_at_entry(&threads, &enters(0.0)) - 4.0).abs() < 1e-12);
        assert!(usage_at_entry(&[], &enters(0.0)).abs() < 1e-12);
    }
}
