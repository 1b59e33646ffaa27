//! Hours of regulation on a simulated machine: what figures 7 to 10 show must hold.

#[path = "../examples/figures/isolation.rs"]
mod isolation;
#[path = "../examples/figures/sim.rs"]
#[allow(dead_code, reason = "the example prints more than the test looks at")]
mod sim;
#[path = "../examples/figures/turns.rs"]
mod turns;

use discnice_progress::model::{Config, Regulator};
use discnice_units::Nanos;
use sim::{IDEAL, Job, Load, Random};
use turns::Member;

const HOUR: f64 = 3600.0;

/// A job that learned its targets on the idle machine, as in section 9.1.
fn calibrated(config: &Config, signals: bool, seed: u64) -> Job {
    let config = Config { probation: Nanos(0), ..config.clone() };
    let mut job = Job::new(&config, signals, seed);
    job.run(&Load(Vec::new()), f64::INFINITY, 2000);
    job.at = 0.0;
    job.stretches.clear();
    job.regulator = Regulator::new(&config);
    job
}

/// Seconds from the end of a load of `seconds` to the next running.
fn overshoot(config: &Config, signals: bool, seconds: f64, seed: u64) -> f64 {
    let mut job = calibrated(config, signals, seed);
    job.run(&Load(vec![(30.0, 30.0 + seconds)]), seconds + 900.0, usize::MAX);
    job.stretches.iter().find(|s| s.to > 30.0 + seconds).unwrap().from - (30.0 + seconds)
}

//= ms-manners/9.4-overshoot
#[test]
fn the_papers_back_off_overshoots_and_ours_does_not() {
    let paper: Vec<f64> = (0..20).map(|s| overshoot(&Config::paper(), false, 600.0, s)).collect();
    let ours: Vec<f64> = (0..20).map(|s| overshoot(&Config::default(), true, 600.0, s)).collect();
    assert!(paper.iter().any(|&s| s > 60.0), "{paper:?}");
    assert!(ours.iter().all(|&s| s < 2.0), "{ours:?}");
}

#[test]
fn an_idle_machine_is_used() {
    for seed in 0..5 {
        let mut job = calibrated(&Config::default(), true, seed);
        job.run(&Load(Vec::new()), HOUR, usize::MAX);
        let (active, _) = job.activity(0.0, HOUR);
        assert!(active > 0.995, "{active}");
    }
}

//= ms-manners/3-idle-time
#[test]
fn calibration_from_within_a_load() {
    for (signals, seed) in [(true, 1), (true, 2), (false, 3), (false, 4)] {
        let config = Config::default();
        let mut job = Job::new(&config, signals, seed);
        let load = Load::bursty(600.0, HOUR, &mut Random(seed));
        job.run(&load, 600.0, usize::MAX);
        let (in_load, _) = job.activity(0.0, 600.0);
        assert!(in_load <= config.probation_duty_frac * 1.05, "{in_load}");
        job.run(&load, HOUR / 2.0, usize::MAX);
        let off = job.target().unwrap() / IDEAL - 1.0;
        assert!(off.abs() < 0.1, "signals {signals} seed {seed}: {off}");
    }
}

//= ms-manners/4.5-per-thread
#[test]
fn the_thread_with_a_free_disk_runs() {
    let mut jobs = [1, 2].map(|seed| calibrated(&Config::default(), true, seed));
    isolation::run(&mut jobs);
    let [c, d] = [0, 1].map(|i: usize| {
        isolation::PHASES.map(|(_, from, to)| 100.0 * jobs[i].activity(from, to).0)
    });
    // Nothing, disk C, nothing, disk D, processor: by priority, by what is free, hardly at all. A phase
    // of two minutes includes the time until a load is noticed, and some probes.
    assert!((60.0..70.0).contains(&c[0]) && (30.0..37.0).contains(&d[0]), "{c:.0?} {d:.0?}");
    assert!(c[1] < 20.0 && d[1] > 75.0, "{c:.0?} {d:.0?}");
    assert!(c[3] > 70.0 && d[3] < 25.0, "{c:.0?} {d:.0?}");
    // Threads that were suspended claim nothing for it afterwards.
    for i in [2, 5] {
        assert!((55.0..72.0).contains(&c[i]) && d[i] > 28.0, "{c:.0?} {d:.0?}");
    }
    assert!(c[4] + d[4] < 35.0, "{c:.0?} {d:.0?}");
}

#[test]
fn a_hundred_jobs_share_an_idle_machine_by_priority() {
    for count in [2usize, 10, 100] {
        let mut jobs: Vec<Job> =
            (0..count).map(|seed| calibrated(&Config::default(), true, seed as u64)).collect();
        let weight = |i: usize| 100.0 * (1 + i % 3) as f64;
        let all: f64 = (0..count).map(weight).sum();
        let end = HOUR / 6.0 * count as f64;
        let member = |(i, job)| Member { job, weight: weight(i), load: Load(Vec::new()) };
        turns::run(&mut jobs.iter_mut().enumerate().map(member).collect::<Vec<_>>(), end);
        let ran: Vec<f64> = jobs.iter().map(|job| job.activity(0.0, end).0).collect();
        let sum: f64 = ran.iter().sum();
        assert!(sum > 0.995, "{count} jobs: {sum}");
        for (i, ran) in ran.iter().enumerate() {
            let fair = weight(i) / all;
            assert!((ran / fair - 1.0).abs() < 0.05, "{count} jobs, job {i}: {}", ran / fair);
        }
    }
}

#[test]
fn half_the_time_under_load() {
    for seed in 1..4 {
        let mut job = calibrated(&Config::default(), true, seed);
        let load = Load::bursty(900.0, 48.0 * HOUR, &mut Random(seed));
        job.run(&load, 48.0 * HOUR, usize::MAX);
        let (active, loaded) = job.activity(0.0, 48.0 * HOUR);
        let share = load.share(0.0, 48.0 * HOUR);
        assert!((0.45..0.55).contains(&share), "{share}");
        assert!(active >= 0.45 && loaded <= 0.06, "active {active}, loaded {loaded}");
    }
}
