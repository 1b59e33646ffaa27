//! What must hold for any job, however it behaves.

use discnice_progress::model::superintendent::{DeclaredResources, State, Thread, next_to_run};
use discnice_progress::model::{Config, Others, Regulator, Targets, Testpoint, Verdict};
use discnice_units::{Moment, Nanos};
use proptest::prelude::*;

/// Any report: a plausible one, or one of the ways to get it wrong.
fn report() -> impl Strategy<Value = (u64, u32, Vec<f64>, Others)> {
    let value = prop_oneof![
        8 => 0.0..1e6f64,
        1 => Just(f64::NAN),
        1 => Just(f64::NEG_INFINITY),
        1 => -1e18..1e18f64,
    ];
    (
        0u64..20_000_000_000,
        0u32..3,
        prop::collection::vec(value, 0..4),
        prop_oneof![Just(Others::Unknown), Just(Others::Idle), Just(Others::Busy)],
    )
}

proptest! {
    #[test]
    fn no_report_breaks_the_regulator(reports in prop::collection::vec(report(), 1..300)) {
        let config = Config { bootstrap: 5, ..Config::default() };
        let (mut targets, mut regulator) = (Targets::default(), Regulator::new(&config));
        let mut at = Moment::FIRST;
        for (gap, index, metrics, others) in reports {
            at = at.plus(Nanos(gap));
            let call = Testpoint { at, index, metrics: &metrics, others };
            let latest = at.plus(config.suspension_cap).plus(Nanos(config.hung.0 * 5));
            match regulator.testpoint(&mut targets, &call) {
                Verdict::Suspend(suspend) => {
                    prop_assert!(suspend.until > at && suspend.until <= latest);
                    prop_assert!(suspend.early_from.is_none_or(|early| early <= suspend.until));
                }
                Verdict::Hold(until) => prop_assert!(until > at && until <= latest),
                _ => {}
            }
            prop_assert!(targets.is_sound());
        }
    }

    //= ms-manners/4.1-units
    #[test]
    fn progress_at_any_steady_rate_is_let_be(
        millis in 20u64..2000,
        amount in 1e-6..1e12f64,
        metrics in 1usize..4,
    ) {
        let config = Config { probation: Nanos(0), ..Config::default() };
        let (mut targets, mut regulator) = (Targets::default(), Regulator::new(&config));
        for i in 1..400u64 {
            let counters = vec![amount * i as f64; metrics];
            let at = Moment::FIRST.plus(Nanos::from_millis(i * millis));
            let call = Testpoint { at, index: 0, metrics: &counters, others: Others::Unknown };
            let verdict = regulator.testpoint(&mut targets, &call);
            prop_assert!(!matches!(verdict, Verdict::Suspend(_) | Verdict::Hold(_)), "{i}");
        }
    }

    #[test]
    fn grants_never_overlap(
        table in prop::collection::vec((0u8..3, 1u32..9, 0.0..100.0f64, 0u64..8, 0u64..100), 0..40),
    ) {
        let now = Moment::FIRST.plus(Nanos::from_millis(100));
        let hung = Nanos::from_millis(50);
        let mut threads: Vec<Thread> = table
            .iter()
            .map(|&(state, weight, usage, bits, since)| Thread {
                state: match state {
                    0 => State::Away,
                    1 => State::Waiting(Moment::FIRST.plus(Nanos::from_millis(since))),
                    _ => State::Running(Moment::FIRST.plus(Nanos::from_millis(since))),
                },
                weight: f64::from(weight),
                usage,
                resources: DeclaredResources(bits),
            })
            .collect();
        while let Some(i) = next_to_run(&threads, now, hung) {
            prop_assert!(matches!(threads[i].state, State::Waiting(_)));
            for other in &threads {
                let running = matches!(other.state, State::Running(s) if now.since(s) <= hung);
                prop_assert!(!(running && other.resources.conflicts(threads[i].resources)));
            }
            threads[i].state = State::Running(now);
        }
        let anyone = |state: fn(&State) -> bool| threads.iter().any(|t| state(&t.state));
        // If a thread waits in the end, another one runs.
        if anyone(|s| matches!(s, State::Waiting(_))) {
            prop_assert!(anyone(|s| matches!(s, State::Running(_))));
        }
    }

    #[test]
    fn targets_survive_their_text(durations in prop::collection::vec(0.01..2.0f64, 1..200)) {
        let config = Config::default();
        let mut targets = Targets::default();
        let mut regulator = Regulator::new(&config);
        let mut at = Moment::FIRST;
        for (i, duration) in durations.iter().enumerate() {
            at = at.plus(Nanos((duration * 1e9) as u64));
            let metrics = [i as f64, (i * i) as f64];
            let call = Testpoint { at, index: 3, metrics: &metrics, others: Others::Unknown };
            let _ = regulator.testpoint(&mut targets, &call);
        }
        let text = serde_json::to_string(&targets).unwrap();
        let back: Targets = serde_json::from_str(&text).unwrap();
        prop_assert!(back.is_sound());
        prop_assert_eq!(back.iter().count(), targets.iter().count());
    }
}
