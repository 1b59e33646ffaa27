use super::*;
use crate::policy::Choice;

const PACE: Pace = Pace::DEFAULT;
const NOW: Moment = Moment(1000 * Nanos::SECOND.0);

//= discnice/5.1-messages
//= rate-windows/3.1-aggregate
#[test]
fn reservations_queue_up() {
    let meter = Meter::new(Rate::per_second(1_000_000));
    let first = meter.reserve(PACE, NOW, 100_000).unwrap();
    let second = meter.reserve(PACE, NOW, 100_000).unwrap();
    assert_eq!(first, NOW);
    assert_eq!(second.since(NOW).0 / 1_000_000, 75, "100 ms of work less 25 ms of credit");
    while meter.reserve(PACE, NOW, 100_000).is_some() {}
    assert!(meter.retry_at(PACE, NOW) > NOW);
}

#[test]
fn operations_catch_up_after_a_pause() {
    let meter = Meter::new(Rate::per_second(1000));
    let pass = |now| {
        let passes = || meter.reserve_operations(PACE, now, 1).filter(|start| *start <= now);
        (0..).take_while(|_| passes().is_some()).count()
    };
    let first = pass(NOW);
    assert!((74..=76).contains(&first), "75 ms of unused allowance, not {first}");
    let then = pass(NOW.plus(Nanos::from_millis(50)));
    assert!((48..=50).contains(&then), "50 ms less the one that waits already, not {then}");
}

#[test]
fn a_scribbled_frontier_holds_no_thread_for_long() {
    let meter = Meter::new(Rate::per_second(BELIEVABLE));
    for scribbled in [u64::MAX, NOW.0 + 3000 * Nanos::SECOND.0] {
        meter.frontier.store(scribbled, Ordering::Relaxed);
        assert_eq!(meter.reserve(PACE, NOW, 1), None);
        let later = meter.retry_at(PACE, NOW);
        assert!(later <= NOW.plus(Nanos(3 * Nanos::SECOND.0)));
        assert!(meter.reserve(PACE, later, 1).is_some());
    }
    let debt = |scribbled: Moment| {
        meter.frontier.store(scribbled.0, Ordering::Relaxed);
        meter.paid_at(NOW, 1).since(NOW)
    };
    let many = Nanos(15 * Nanos::SECOND.0);
    assert_eq!(debt(NOW.plus(many)), many, "the windows of many members");
    assert_eq!(debt(Moment::NEVER), Nanos(3 * Nanos::SECOND.0));
    assert_eq!(meter.frontier(), NOW.plus(Nanos(3 * Nanos::SECOND.0)), "brought back");
    meter.rate.store(0, Ordering::Relaxed);
    assert_eq!(debt(Moment::NEVER), Nanos(0), "nothing is owed without a threshold");
    assert_eq!(meter.reserve(PACE, NOW, u64::MAX), Some(NOW));
}

#[test]
fn what_is_forfeited_does_not_pass() {
    let meter = Meter::new(Rate::per_second(1_000_000));
    meter.forfeit(NOW);
    meter.reserve(PACE, NOW, 100_000).unwrap();
    let second = meter.reserve(PACE, NOW, 100_000).unwrap();
    assert_eq!(second.since(NOW).0 / 1_000_000, 100, "100 ms of work and no credit");
    let owed = meter.frontier();
    meter.forfeit(NOW);
    assert_eq!(meter.frontier(), owed, "what is owed stays");
    let free = Meter::new(Rate::UNLIMITED);
    free.forfeit(NOW);
    assert_eq!(free.frontier(), Moment::FIRST);
}

//= rate-windows/8-feedback
//= rate-windows/4-lost-bandwidth
#[test]
fn settling_corrects_both_ways() {
    let meter = Meter::new(Rate::per_second(1 << 20));
    meter.reserve(PACE, NOW, 1 << 18);
    meter.settle(PACE, NOW, 1 << 18, 0);
    assert!(meter.frontier() <= NOW, "nothing passed, nothing owed");
    meter.settle(PACE, NOW, 0, 1 << 20);
    assert!(meter.frontier() > NOW.plus(Nanos::from_millis(900)));
    meter.credit(PACE, NOW, 1 << 20);
    assert!(meter.frontier() <= NOW);
    assert_eq!(meter.total(), 0);
}

//= discnice/4.1-own-policy
//= discnice/5.3-function
#[test]
fn a_policy_that_looks_back_remembers_what_was_reserved() {
    const SLEEP: Pace = Pace::DEFAULT.with_policy(Choice::Sleep);
    let meter = Meter::new(Rate::per_second(1_000_000));
    let pass = |now| (0..).take_while(|_| meter.reserve(SLEEP, now, 100_000).is_some()).count();
    assert_eq!(pass(NOW), 10, "what N = 1 s allows at once, where the rate window has 2 wait");
    let retry = meter.retry_at(SLEEP, NOW);
    assert_eq!(retry.since(NOW), Nanos::from_millis(100), "B/R - N");
    meter.settle(SLEEP, NOW, 100_000, 0);
    assert_eq!(meter.total(), 0);
    assert_eq!(pass(retry), 1, "one did not pass after all");
    let later = NOW.plus(Nanos::from_millis(1060));
    assert_eq!(pass(later), 9, "what passed a second ago is forgotten");
    meter.settle(SLEEP, later, 0, 10_000_000);
    assert!(meter.retry_at(SLEEP, later) > later.plus(Nanos(9 * Nanos::SECOND.0)));
}

#[test]
fn operations_are_paced_by_any_policy() {
    const SLEEP: Pace = Pace::DEFAULT.with_policy(Choice::Sleep);
    let meter = Meter::new(Rate::per_second(50));
    let passes = || meter.reserve_operations(SLEEP, NOW, 1).is_some();
    assert_eq!((0..).take_while(|_| passes()).count(), 50);
}
