use super::*;
use proptest::prelude::*;

const RULE: Rule = Rule { rate: Rate::per_second(5 << 20), window: WINDOW, longest: None };

/// The frontier says it all.
const fn past(frontier: Moment) -> Past {
    Past { frontier, passed: 0 }
}

/// Lets a stream of (gap, amount) pass and returns (moment, amount) for each.
fn simulate(rule: Rule, work: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut now, mut frontier) = (Moment(Nanos::SECOND.0), Moment::FIRST);
    let mut passed = Vec::new();
    for &(gap, amount) in work {
        now = now.plus(Nanos(gap));
        let reserved = loop {
            let reserved = rule.reserve(past(frontier), now, amount);
            match reserved.start {
                Some(start) => break (start, reserved.frontier),
                None => now = rule.retry_at(frontier, now),
            }
        };
        (now, frontier) = reserved;
        passed.push((now.0, amount));
    }
    passed
}

fn most_in_any(window: u64, passed: &[(u64, u64)]) -> u64 {
    passed
        .iter()
        .map(|&(from, _)| {
            passed.iter().filter(|p| p.0 >= from && p.0 < from + window).map(|p| p.1).sum()
        })
        .max()
        .unwrap_or(0)
}

proptest! {
    //= discnice/5.3-window
    //= discnice/5.3-n
    //= discnice/6.5-gradual
    //= rate-windows/3.2-delay
    //= rate-windows/5.2-not-to-exceed
    #[test]
    fn no_window_exceeds_its_limit(
        work in prop::collection::vec((0u64..300_000_000, 1u64..200_000), 1..600)
    ) {
        let passed = simulate(RULE, &work);
        let most = most_in_any(WINDOW.0, &passed) as f64;
        prop_assert!(most <= 1.02 * 5.0 * RULE.rate.get() as f64, "{most}");
    }

    //= discnice/5.3-window
    #[test]
    fn a_busy_job_gets_its_rate(amounts in prop::collection::vec(4096u64..200_000, 400..600)) {
        let work: Vec<_> = amounts.iter().map(|&amount| (0, amount)).collect();
        let passed = simulate(RULE, &work);
        let bytes: u64 = amounts.iter().rev().skip(1).sum();
        let seconds = (passed.last().unwrap().0 - passed[0].0) as f64 / 1e9;
        let rate = bytes as f64 / seconds;
        prop_assert!(rate >= 0.98 * RULE.rate.get() as f64, "{rate}");
    }

    #[test]
    fn arithmetic_never_overflows(
        frontier: u64, now: u64, amount: u64, rate: u64, window: u64, other: u64
    ) {
        let rule = Rule { rate: Rate::per_second(rate), window: Nanos(window), longest: None };
        let (frontier, now) = (Moment(frontier), Moment(now));
        let _ = rule.reserve(past(frontier), now, amount);
        let _ = rule.charge(past(frontier), now, amount);
        let _ = rule.refund(frontier, amount);
        let _ = rule.rescale(frontier, now, Rate::per_second(other));
        prop_assert!((4096..=4 << 20).contains(&rule.slice()));
    }
}

//= rate-windows/5.2-forget
#[test]
fn idling_saves_up_no_more_than_the_credit() {
    let start = Moment(100 * Nanos::SECOND.0);
    let after_idling = RULE.charge(past(Moment::FIRST), start, 0);
    assert_eq!(start.since(after_idling), Nanos::from_millis(50));
}

#[test]
fn the_credit_leaves_room_for_the_piece_that_crosses_the_border() {
    for (mebibytes, bound) in
        [(2, 1.025), (3, 1.025), (5, 1.025), (13, 1.02), (20, 1.02), (100, 1.02), (1000, 1.02)]
    {
        let rule = Rule { rate: Rate::per_second(mebibytes << 20), ..RULE };
        let most = WINDOW.plus(rule.credit()).plus(rule.rate.time_for(rule.slice()));
        let share = rule.aim().get() as f64 / rule.rate.get() as f64;
        assert!(share * most.as_secs_f64() <= bound * 5.0, "{mebibytes} MiB/s: {most:?}");
    }
}

#[test]
fn a_new_rate_keeps_the_debt() {
    let now = Moment(10 * Nanos::SECOND.0);
    let debt = now.plus(Nanos::SECOND);
    let faster = RULE.rescale(debt, now, Rate::per_second(50 << 20));
    assert_eq!(faster.since(now), Nanos::from_millis(100));
    assert_eq!(RULE.rescale(debt, now, Rate::UNLIMITED), Moment::FIRST);
}
