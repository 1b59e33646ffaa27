use super::*;

struct Job {
    config: Config,
    targets: Targets,
    regulator: Regulator,
    at: Moment,
    done: f64,
}

impl Job {
    /// A job with a target of 0.1 s a unit, learned on a quiet machine.
    fn settled() -> Self {
        let config = Config::default();
        let regulator = Regulator::new(&config);
        let mut job =
            Self { config, targets: Targets::default(), regulator, at: Moment::FIRST, done: 0.0 };
        for _ in 0..60 {
            job.step(100, 1.0);
        }
        job
    }

    fn step(&mut self, millis: u64, progress: f64) -> Verdict {
        self.done += progress;
        self.report(millis, &[self.done])
    }

    fn report(&mut self, millis: u64, metrics: &[f64]) -> Verdict {
        self.report_beside(Others::Idle, millis, metrics)
    }

    fn report_beside(&mut self, others: Others, millis: u64, metrics: &[f64]) -> Verdict {
        self.at = self.at.plus(Nanos::from_millis(millis));
        let call = Testpoint { at: self.at, index: 0, metrics, others };
        self.regulator.testpoint(&mut self.targets, &call)
    }
}

//= ms-manners/4-architecture
#[test]
fn slow_progress_suspends_within_m_testpoints() {
    let mut job = Job::settled();
    assert!(!job.regulator.lags());
    let verdicts: Vec<_> = (0..8).map(|_| job.step(200, 1.0)).collect();
    assert!(job.regulator.lags());
    let at = verdicts.iter().position(|v| matches!(v, Verdict::Suspend(_))).unwrap();
    assert!(at < 7, "{verdicts:?}");
    let settled = job.targets.iter().next().unwrap().1.is_settled();
    assert!(settled && job.config.check().is_ok());
}

//= ms-manners/3-external-resources
#[test]
fn what_is_slowed_elsewhere_is_not_suspended() {
    let slow = |job: &mut Job, others| {
        let done = job.done;
        (1..=50).any(|step: u32| {
            job.done = done + f64::from(step);
            let metrics = [job.done];
            matches!(job.report_beside(others, 200, &metrics), Verdict::Suspend(_))
        })
    };
    let mut job = Job::settled();
    assert!(!slow(&mut job, Others::Elsewhere));
    assert!(slow(&mut job, Others::Idle), "its pace when it was fast is still the target");
    // The paper's back-off asks no signals.
    let mut job = Job::settled();
    job.config.early_probe = None;
    job.regulator = Regulator::new(&job.config);
    assert!(slow(&mut job, Others::Elsewhere));
}

//= ms-manners/4.3-critical
#[test]
fn a_thread_that_ignores_the_verdict_does_not_teach() {
    let mut job = Job::settled();
    while !matches!(job.step(200, 1.0), Verdict::Suspend(_)) {}
    let taught = job.targets.iter().next().unwrap().1.samples();
    assert_eq!(job.step(200, 1.0), Verdict::Skipped(Skip::Unregulated));
    assert_eq!(job.targets.iter().next().unwrap().1.samples(), taught);
    job.step(900, 1.0);
    assert!(!matches!(job.step(100, 1.0), Verdict::Skipped(_)));
}

//= ms-manners/7.1-hung
#[test]
fn bad_counters_never_hold_the_job() {
    let mut job = Job::settled();
    let before = job.done;
    for bad in [f64::NAN, f64::INFINITY, -1e300, 1e19] {
        assert_eq!(job.report(100, &[bad]), Verdict::Skipped(Skip::OutOfRange));
    }
    assert_eq!(job.report(100, &[1.0, 2.0]), Verdict::Skipped(Skip::Set(BadSet::OtherSize)));
    assert_eq!(job.report(100, &[]), Verdict::Skipped(Skip::Set(BadSet::Count)));
    assert_eq!(job.report(100, &[before - 5.0]), Verdict::Skipped(Skip::Backwards));
    assert!(matches!(job.report(100, &[before - 4.0]), Verdict::Proceed(_)));
    assert_eq!(job.report(11_000, &[before]), Verdict::Skipped(Skip::Hung));
}

#[test]
fn a_counter_that_only_goes_down_is_never_judged() {
    let mut job = Job::settled();
    for _ in 0..1000 {
        assert_eq!(job.step(200, -1.0), Verdict::Skipped(Skip::Backwards));
        assert_eq!(job.report(200, &[f64::NAN]), Verdict::Skipped(Skip::OutOfRange));
    }
}

#[test]
fn a_counter_that_never_moves_leaves_the_job_alone() {
    let mut job = Job::settled();
    for _ in 0..1000 {
        assert_eq!(job.step(100, 0.0), Verdict::Skipped(Skip::NoProgress));
    }
    // The long standstill was something outside, not slow progress.
    assert!(!matches!(job.step(100, 1.0), Verdict::Suspend(_)));
}

//= ms-manners/4.1-rate
#[test]
fn coarse_counters_are_judged_over_the_whole_interval() {
    let mut job = Job::settled();
    for i in 1..300 {
        let verdict = job.step(10, if i % 10 == 0 { 1.0 } else { 0.0 });
        assert!(!matches!(verdict, Verdict::Suspend(_)), "testpoint {i}");
    }
}

#[test]
fn probation_counts_no_time_of_before_the_job() {
    let config = Config::default();
    let mut targets = Targets::default();
    // One run after another, on a machine that is up for a day.
    let mut at = Moment(86_400 * Nanos::SECOND.0);
    for _run in 0..20 {
        let mut regulator = Regulator::new(&config);
        for done in 0..6 {
            at = at.plus(Nanos::from_millis(100));
            let metrics = &[f64::from(done)];
            let call = Testpoint { at, index: 0, metrics, others: Others::Unknown };
            if let Verdict::Hold(until) = regulator.testpoint(&mut targets, &call) {
                at = until;
                regulator.resumed(at, false);
            }
        }
    }
    let set = targets.iter().next().unwrap().1;
    assert!(set.samples() == 100 && !set.is_settled(), "a minute is not an hour");
}

//= ms-manners/4.3-probation
#[test]
fn probation_bounds_the_share_of_time() {
    let config = Config::default();
    let (mut targets, mut regulator) = (Targets::default(), Regulator::new(&config));
    let (mut at, mut ran) = (0u64, 0u64);
    for i in 0..500u64 {
        at += 100;
        ran += 100;
        let now = Moment::FIRST.plus(Nanos::from_millis(at));
        let call = Testpoint { at: now, index: 0, metrics: &[i as f64], others: Others::Unknown };
        if let Verdict::Hold(until) = regulator.testpoint(&mut targets, &call) {
            at = until.0 / 1_000_000;
            regulator.resumed(until, false);
        }
    }
    let duty = ran as f64 / at as f64;
    assert!((0.19..0.21).contains(&duty), "{duty}");
}
