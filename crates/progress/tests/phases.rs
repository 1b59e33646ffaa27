//! A job in phases: a metric set and a target for each, one judgment over all.

use discnice_progress::model::{Config, Others, Regulator, Targets, Testpoint, Verdict};
use discnice_units::{Moment, Nanos};

/// A job with a first phase of 100 ms a unit and a second of 20 ms.
struct Job {
    targets: Targets,
    regulator: Regulator,
    at: Moment,
    done: [f64; 2],
}

const MILLIS: [u64; 2] = [100, 20];

impl Job {
    /// Both targets are learned on a quiet machine.
    fn settled() -> Self {
        let regulator = Regulator::new(&Config::default());
        let mut job =
            Self { targets: Targets::default(), regulator, at: Moment::FIRST, done: [0.0; 2] };
        for phase in [0, 1] {
            for _ in 0..60 {
                job.step(phase, 1);
            }
        }
        job
    }

    /// One unit in this phase, so many times slower than undisturbed.
    fn step(&mut self, phase: usize, slower: u64) -> Verdict {
        self.at = self.at.plus(Nanos::from_millis(MILLIS[phase] * slower));
        self.done[phase] += 1.0;
        let call = Testpoint {
            at: self.at,
            index: phase as u32,
            metrics: &[self.done[phase]],
            others: Others::Idle,
        };
        self.regulator.testpoint(&mut self.targets, &call)
    }
}

//= ms-manners/4.4-phases
#[test]
fn each_phase_has_its_own_target() {
    let mut job = Job::settled();
    let seconds: Vec<f64> = job
        .targets
        .iter()
        .map(|(_, calibrator)| calibrator.target_duration(&[1.0]).unwrap())
        .collect();
    for (found, millis) in seconds.iter().zip(MILLIS) {
        assert!((found * 1000.0 / millis as f64 - 1.0).abs() < 0.05, "{seconds:?}");
    }
    // The slower phase is not contention.
    for step in 0..200 {
        let verdict = job.step(step / 5 % 2, 1);
        assert!(!matches!(verdict, Verdict::Suspend(_)), "step {step}");
    }
}

//= ms-manners/4.4-spanning
#[test]
fn a_judgment_spans_phases() {
    let mut job = Job::settled();
    // No phase lasts long enough to be judged by itself, which takes five samples.
    let suspended = (0..12).position(|step| matches!(job.step(step % 2, 2), Verdict::Suspend(_)));
    assert!(suspended.is_some_and(|step| step < 9), "{suspended:?}");
}

/// Counts suspensions of a job with one counter that rises in both phases, as processor time does, each 50 testpoints long.
fn suspensions(told: bool) -> usize {
    let mut job = Job::settled();
    job.targets = Targets::default();
    let mut suspended = 0;
    for step in 0..4000 {
        let phase = step / 50 % 2;
        job.at = job.at.plus(Nanos::from_millis(MILLIS[phase]));
        job.done[0] += 1.0;
        let (index, metrics) = (if told { phase as u32 } else { 0 }, [job.done[0]]);
        if told && step % 50 == 0 {
            job.regulator.count_from(index, &metrics);
        }
        let call = Testpoint { at: job.at, index, metrics: &metrics, others: Others::Idle };
        if matches!(job.regulator.testpoint(&mut job.targets, &call), Verdict::Suspend(_)) {
            suspended += 1;
            job.regulator.resumed(job.at, false);
        }
    }
    suspended
}

//= ms-manners/4.4-outside-phases
#[test]
fn phases_that_are_told_from_outside_keep_a_slow_phase_from_being_taken_for_contention() {
    let (silent, told) = (suspensions(false), suspensions(true));
    assert!(silent > 100 && told == 0, "{silent} suspensions without phases, {told} with them");
}
