//! A machine on a simulated clock: others' traffic in, state out.

use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const THRESHOLDS: Thresholds = Thresholds::of(Rate::per_second(500 << 20));

/// Observes traffic every [`INTERVAL`]; `at(ms)` is the others' rate. Returns each change of
/// state: when (milliseconds) and to what.
fn simulate(lasts: u64, stalled: bool, at: impl Fn(u64) -> u64) -> Vec<(u64, bool)> {
    let step = INTERVAL.0 / 1_000_000;
    let mut seen: VecDeque<u64> = VecDeque::new();
    let (mut state, mut changed, mut changes) = (false, 0, Vec::new());
    for now in (0..lasts).step_by(step as usize) {
        seen.push_front((now..now + step).map(|ms| at(ms) / 1000).sum());
        seen.truncate((RELEASE.0 / INTERVAL.0) as usize);
        let recent: Vec<u64> =
            seen.iter().take((ATTACK.0 / INTERVAL.0) as usize).copied().collect();
        let observed = Seen {
            attack: recent.iter().sum(),
            lasting: recent.iter().filter(|bytes| **bytes > 0).count() > 1,
            release: seen.iter().sum(),
            stalled,
            waits: None,
            since: Nanos::from_millis(now + step - changed),
        };
        let next = is_throttled(state, &THRESHOLDS, &observed);
        if next != state {
            changed = now + step;
            changes.push((changed, next));
            state = next;
        }
    }
    changes
}

//= rate-windows/3.1-measured
#[test]
fn gives_way_within_200_ms_and_comes_back_within_2_s() {
    let changes =
        simulate(10_000, false, |ms| if (3000..6000).contains(&ms) { 100 << 20 } else { 0 });
    let [(onset, true), (end, false)] = changes[..] else { panic!("{changes:?}") };
    assert!((3000..=3200).contains(&onset), "{onset}");
    assert!((6000..=8000).contains(&end), "{end}");
}

#[test]
fn a_single_burst_is_not_a_foreground() {
    let burst = |ms: u64| if (3000..3050).contains(&ms) { 200 << 20 } else { 0 };
    assert!(simulate(10_000, false, burst).is_empty());
}

#[test]
fn a_starved_foreground_is_seen_only_while_tasks_stall() {
    let little = |ms: u64| if ms > 3000 { 600 << 10 } else { 0 };
    assert!(simulate(10_000, false, little).is_empty());
    let changes = simulate(10_000, true, little);
    assert!(matches!(changes[..], [(at, true)] if at < 4500), "{changes:?}");
}

proptest! {
    //= rate-windows/3.1-hysteresis
    /// Traffic that stays between the thresholds changes nothing, whatever the state was.
    #[test]
    fn between_the_thresholds_nothing_flaps(
        noise in prop::collection::vec(0u64..1000, 200), busy_before: bool
    ) {
        let (low, high) = (THRESHOLDS.low.get(), THRESHOLDS.high.get());
        let at = |ms: u64| match ms {
            0..2000 => if busy_before { 10 * high } else { 0 },
            // Between the two, and far enough above `low` for what a millisecond's share rounds off.
            _ => {
                let floor = low + low / 50;
                floor + (high - floor) * noise[(ms / 50 % 200) as usize] / 1000
            }
        };
        let changes = simulate(10_000, false, at);
        prop_assert_eq!(changes.len(), usize::from(busy_before), "{:?}", changes);
    }

    /// However the traffic toggles, the state changes at most twice within a release window.
    #[test]
    fn never_flaps_faster_than_the_release(
        period in 1u64..4000, rate in 1u64..1 << 30, stalled: bool
    ) {
        let changes = simulate(20_000, stalled, |ms| if ms / period % 2 == 0 { rate } else { 0 });
        for pair in changes.windows(3) {
            prop_assert!(pair[2].0 - pair[0].0 >= RELEASE.0 / 1_000_000, "{:?}", changes);
        }
    }

    /// No byte of the others is hidden for good, and none of our own is taken for theirs as long
    /// as it was charged before the device moved it.
    #[test]
    fn own_traffic_explains_itself(
        steps in prop::collection::vec((0u64..1 << 24, 0u64..1 << 24), 1..100)
    ) {
        let (mut pool, mut waiting, mut unexplained, mut foreign) = (0, 0u64, 0, 0);
        for (own, others) in steps {
            waiting += own;
            let moved = waiting / 2;
            waiting -= moved;
            foreign += others;
            let (more, rest) = explain(pool, own, moved + others, u64::MAX);
            (unexplained, pool) = (unexplained + more, rest);
        }
        prop_assert!(unexplained <= foreign);
        prop_assert!(unexplained + pool.max(waiting) >= foreign, "hidden only by what still waits");
    }

    //= rate-windows/3.1-several
    #[test]
    fn shares_never_exceed_the_threshold(rate in 1u64.., weights in prop::collection::vec(1u32..10_000, 1..50)) {
        let all: u32 = weights.iter().sum();
        let sum: u128 = weights.iter()
            .map(|w| u128::from(share(Rate::per_second(rate), *w, all).get()))
            .sum();
        prop_assert!(sum <= u128::from(rate) + weights.len() as u128);
    }

    #[test]
    fn arithmetic_never_overflows(a: u64, b: u64, c: u64, d: u64) {
        let _ = explain(a, b, c, d);
        prop_assert!(decayed(a, Nanos(b), Nanos(c)) <= a);
        prop_assert!(spread(a, Nanos(b), ATTACK) <= a);
        let _ = Thresholds::of(Rate::per_second(a));
    }
}

/// Others' requests that come every `apart` ms and each wait `waits` ms, for `lasts` ms: for how long classes are held within that
/// time, and how long after.
fn waiting(apart: u64, waits: u64, lasts: u64) -> (u64, u64) {
    let step = INTERVAL.0 / 1_000_000;
    let (mut seen, mut state, mut held, mut after) = (VecDeque::new(), false, 0, 0);
    for now in (0..lasts + 2000).step_by(step as usize) {
        let come = |ms: u64| ms < lasts && ms.is_multiple_of(apart);
        seen.push_front((now..now + step).filter(|ms| come(*ms)).count() as u64 * waits);
        seen.truncate((RELEASE.0 / INTERVAL.0) as usize);
        let quiet = seen.iter().position(|waited| *waited > 0).unwrap_or(seen.len()) as u64;
        let observed = Waits {
            attack: Nanos::from_millis(seen.iter().take(4).sum()),
            spans: seen.iter().filter(|waited| **waited > 0).count() as u64,
            quiet: Nanos(quiet * INTERVAL.0),
        };
        let observed = Seen { waits: Some(observed), ..Seen::default() };
        state = is_throttled(state, &THRESHOLDS, &observed);
        if state {
            *if now < lasts { &mut held } else { &mut after } += step;
        }
    }
    (held, after)
}

//= ms-manners/3-symmetry
#[test]
fn a_process_that_waits_is_given_way_to_however_little_it_moves() {
    for apart in [10, 50, 100, 200] {
        let (held, after) = waiting(apart, 20, 10_000);
        assert!(held > 9_000, "every {apart} ms: held for {held} ms of 10 s");
        assert!(after <= 500, "every {apart} ms: free again after {after} ms");
    }
}

#[test]
fn a_request_a_second_takes_a_fifth_of_a_jobs_time_at_most() {
    let (held, _) = waiting(1000, 30, 20_000);
    assert!((1..=4_000).contains(&held), "{held} ms of 20 s");
    assert_eq!(waiting(50, 0, 10_000), (0, 0), "what does not wait is not given way to");
}
