use super::*;

//= discnice/4.1-own-policy
#[test]
fn every_policy_is_named_and_survives_shared_memory() {
    for policy in Choice::ALL {
        assert_eq!(Choice::named(policy.name()), Some(policy));
        for window in [None, Some(Nanos::SECOND), Some(LONGEST_WINDOW)] {
            let pace = Pace::DEFAULT.with_policy(policy).with_window(window);
            assert_eq!(Pace::from_word(pace.to_word()), pace);
            assert_eq!(pace.given_window(), window);
        }
    }
    assert_eq!(Choice::named("frontier"), None);
    assert_eq!(Pace::from_word(u64::MAX).window(), pace::WINDOW, "scribbled");
}

//= rate-windows/3.2-tuning
#[test]
fn bounds_of_sleeps_survive_shared_memory_and_what_cannot_be_given_is_the_usual() {
    let pace = Pace::DEFAULT.with_policy(Choice::Sleep).with_window(Some(Nanos::SECOND));
    let (short, long) = (Nanos(2_500_000), Nanos::from_millis(150));
    let bound = pace.with_shortest_sleep(Some(short)).with_longest_sleep(Some(long));
    assert_eq!(Pace::from_word(bound.to_word()), bound);
    assert_eq!((bound.shortest_sleep(), bound.given_longest_sleep()), (short, Some(long)));
    let rate = Rate::per_second(10 << 20);
    assert_eq!(bound.rule(rate).slice(), (10 << 20) * 15 / 100 / 4096 * 4096);
    assert_eq!(bound.rule(rate).long_slice(), bound.rule(rate).slice());
    let usual = bound.with_shortest_sleep(None).with_longest_sleep(None);
    assert_eq!(usual, pace);
    let scribbled = Pace::from_word(u64::MAX);
    assert_eq!(scribbled.shortest_sleep(), pace::SHORTEST_SLEEP);
    assert_eq!(scribbled.given_longest_sleep(), None);
}

#[test]
fn a_window_that_no_policy_can_have_is_the_usual_one() {
    let sleep = Pace::DEFAULT.with_policy(Choice::Sleep);
    assert_eq!(sleep.window(), sleep::WINDOW);
    assert_eq!(sleep.with_window(Some(Nanos(2 * Nanos::SECOND.0))).window().0, 2_000_000_000);
    assert_eq!(sleep.with_window(Some(LONGEST_WINDOW)).window(), sleep::WINDOW);
    let short = Pace::DEFAULT.with_window(Some(Nanos::from_millis(99)));
    assert_eq!(short.window(), pace::WINDOW);
}
