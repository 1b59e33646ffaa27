//! False alarms and delays of the sequential test and of the sign test, simulated side by side.
//!
//! The sign test's delays are those from any moment: testpoints of before the slowdown, undecided
//! as yet, count in its sample.

use std::sync::Arc;

use discnice_progress::model::binomial::Thresholds;
use discnice_progress::model::sequential::SlowdownDetector;
use discnice_progress::model::{
    Comparator, Config, Judgment, Others, Regulator, Targets, Testpoint, Verdict,
};
use discnice_units::Moment;

/// Spread of one testpoint's duration (standard deviation of its logarithm), as of the paper's figure 8.
const SPREAD: f64 = 0.35;

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Time of a testpoint in parts of its target, which is the median.
    fn slowness(&mut self) -> f64 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (SPREAD * normal).exp()
    }
}

/// Something that raises alarms.
type Alarm<'a> = &'a mut dyn FnMut(f64) -> bool;

fn signs() -> impl FnMut(f64) -> bool {
    let thresholds = Arc::new(Thresholds::new(0.05, 0.2));
    let mut comparator = Comparator::new(Arc::clone(&thresholds), thresholds);
    move |slowness| comparator.compare(slowness > 1.0, false) == Judgment::Poor
}

fn sequential(every: f64) -> impl FnMut(f64) -> bool {
    let mut detector = SlowdownDetector::default();
    let thresholds = Arc::new(Thresholds::new(0.05, 0.2));
    let mut comparator = Comparator::new(Arc::clone(&thresholds), thresholds);
    move |slowness| {
        let alarm = detector.observe(slowness, 1.0, every);
        if !alarm && comparator.compare(slowness > 1.0, false) == Judgment::Good {
            detector.undisturbed();
        }
        alarm
    }
}

/// Mean testpoints from one false alarm to the next, of testpoints that take what `time` says.
fn between(alarm: Alarm<'_>, mut time: impl FnMut(&mut Random) -> f64) -> f64 {
    const TESTPOINTS: u32 = 80_000;
    let mut random = Random(1);
    let alarms = (0..TESTPOINTS).filter(|_| alarm(time(&mut random))).count();
    f64::from(TESTPOINTS) / alarms.max(1) as f64
}

/// Mean testpoints from the beginning of a slowdown, at any moment, to the alarm.
fn delay(alarm: Alarm<'_>, times: f64) -> f64 {
    const SLOWDOWNS: u32 = 100;
    let mut random = Random(2);
    let mut testpoints = 0u32;
    for _ in 0..SLOWDOWNS {
        for _ in 0..600 {
            alarm(random.slowness());
        }
        testpoints += (1..).find(|_| alarm(times * random.slowness())).unwrap_or(0);
    }
    f64::from(testpoints) / f64::from(SLOWDOWNS)
}

#[test]
fn false_alarms_are_as_rare_as_promised_whatever_the_noise() {
    type Time = fn(&mut Random) -> f64;
    let noises: [(&str, Time); 4] = [
        ("as the paper's", Random::slowness),
        ("heavy tails", |random| (1.0 / random.uniform().max(1e-9) - 1.0).powf(0.7)),
        ("two kinds of work", |random| if random.uniform() < 0.5 { 0.5 } else { 1.0 }),
        ("hardly any", |random| 1.0 + 1e-6 * (random.uniform() - 0.5)),
    ];
    for (name, time) in noises {
        for every in [100.0, 1000.0] {
            let found = between(&mut sequential(every), time);
            assert!(found >= every, "{name}: promised {every}, found {found}");
        }
    }
}

//= ms-manners/11-parametric
#[test]
fn slowdowns_are_found_sooner_than_by_signs_alone() {
    // Equal false alarms: one in about 360 testpoints.
    const EVERY: f64 = 228.0;
    let mine = between(&mut sequential(EVERY), Random::slowness);
    let theirs = between(&mut signs(), Random::slowness);
    assert!(mine > 0.8 * theirs, "one in {mine} against one in {theirs}");
    println!("false alarms: signs one in {theirs:.0}, sequential one in {mine:.0}");
    for (times, part) in [(4.0, 0.2), (2.0, 0.35), (1.5, 0.5), (1.25, 0.7), (1.1, 0.85)] {
        let (theirs, mine) = (delay(&mut signs(), times), delay(&mut sequential(EVERY), times));
        println!("{times} times slower, found after: signs {theirs:.1}, sequential {mine:.1}");
        assert!(mine < part * theirs, "{times} times slower: {mine} against {theirs} testpoints");
    }
}

/// Suspensions of a job that nothing disturbs, in 30 hours with a testpoint each half second.
fn false_stops(config: &Config) -> u32 {
    let (mut targets, mut regulator) = (Targets::default(), Regulator::new(config));
    let (mut random, mut at, mut ran, mut done) = (Random(3), 0.0, 0.0, 0.0);
    let mut stops = 0;
    while ran < 30.0 * 3600.0 {
        let took = 0.5 * random.slowness();
        at += took;
        ran += took;
        done += 1.0;
        let call = Testpoint {
            at: Moment((at * 1e9) as u64),
            index: 0,
            metrics: &[done],
            others: Others::Unknown,
        };
        let until = match regulator.testpoint(&mut targets, &call) {
            Verdict::Suspend(suspend) => {
                stops += 1;
                suspend.until
            }
            Verdict::Hold(until) => until,
            Verdict::Proceed(_) | Verdict::Skipped(_) => continue,
        };
        at = until.since(Moment::FIRST).as_secs_f64();
        regulator.resumed(until, false);
    }
    stops
}

/// For how much of the last five of ten hours a job is suspended that is looked at five times a second, and does what
/// `progress` says between two looks.
fn suspended_frac(mut progress: impl FnMut(&mut Random, f64) -> f64) -> f64 {
    let (mut targets, mut regulator) = (Targets::default(), Regulator::new(&Config::default()));
    let (mut random, mut at, mut suspended, mut done) = (Random(4), 0.0, 0.0, 0.0);
    while at < 36_000.0 {
        at += 0.2;
        done += progress(&mut random, at);
        let now = Moment((at * 1e9) as u64);
        let call = Testpoint { at: now, index: 0, metrics: &[done], others: Others::Idle };
        if let Verdict::Suspend(suspend) = regulator.testpoint(&mut targets, &call) {
            let early = suspend.early_from.unwrap_or(suspend.until);
            if at > 18_000.0 {
                suspended += early.since(now).as_secs_f64();
            }
            at = early.since(Moment::FIRST).as_secs_f64();
            regulator.resumed(early, true);
        }
    }
    suspended / 18_000.0
}

//= ms-manners/4.3-average
#[test]
fn bursts_of_progress_do_not_make_the_rest_seem_slow() {
    let uneven = |random: &mut Random, _: f64| random.slowness().powf(0.5 / SPREAD);
    let cached = |random: &mut Random, at: f64| match random.uniform() < 0.01 {
        true => 1000.0,
        false => uneven(random, at),
    };
    for found in [suspended_frac(uneven), suspended_frac(cached)] {
        assert!(found < 0.03, "suspended for {found} of the time, though nothing disturbs");
    }
    let half =
        |random: &mut Random, at: f64| uneven(random, at) / if at > 18_000.0 { 2.0 } else { 1.0 };
    let found = suspended_frac(half);
    assert!(found > 0.8, "suspended for {found} of the time beside others");
}

//= ms-manners/11-parametric
#[test]
fn an_undisturbed_job_is_stopped_as_seldom_as_promised() {
    // Without slack, so that the target is what the job needs in the median.
    let config = |false_stop_hours| Config { false_stop_hours, slack: 1.0, ..Config::default() };
    let (signs, hourly) = (false_stops(&config(0.0)), false_stops(&config(1.0)));
    assert!(hourly <= 30, "{hourly} false stops in 30 hours");
    assert!(signs > 5 * hourly.max(1), "{signs} by the sign test, {hourly} by the sequential one");
}
