//! Figure 9: two threads, a disk each, that run one at a time beside loads (section 9.5).

use discnice_manners::superintendent::{Resources, State, Thread, next_to_run, usage_decay};
use discnice_units::Nanos;

use crate::sim::{Job, Load, nanos};

/// What is under load, and from when to when, in seconds.
pub const PHASES: [(&str, f64, f64); 6] = [
    ("nothing", 0.0, 120.0),
    ("disk C", 120.0, 240.0),
    ("nothing", 240.0, 360.0),
    ("disk D", 360.0, 480.0),
    ("processor", 480.0, 600.0),
    ("nothing", 600.0, 720.0),
];

/// The paper's C drive has less free space, and so the higher priority.
pub const NAMES: [&str; 2] = ["disk C", "disk D"];
const WEIGHTS: [f64; 2] = [200.0, 100.0];

/// The loads that a thread on this disk meets.
fn loads(disk: &str) -> Load {
    let met = PHASES.iter().filter(|(what, ..)| *what == disk || *what == "processor");
    Load(met.map(|&(_, from, to)| (from, to)).collect())
}

/// Runs the two jobs, which have learned their targets, through all phases.
pub fn run(jobs: &mut [Job; 2]) {
    let loads = NAMES.map(loads);
    let mut usage = [0.0; 2];
    let mut now = 0.0;
    let end = PHASES[PHASES.len() - 1].2;
    while now < end {
        // A job's own clock stands where its suspension ends.
        let thread = |i: usize| Thread {
            state: if jobs[i].at <= now { State::Waiting(nanos(jobs[i].at)) } else { State::Away },
            weight: WEIGHTS[i],
            usage: usage[i],
            resources: Resources::ALL,
        };
        let hung = Nanos(10 * Nanos::SECOND.0);
        let Some(next) = next_to_run(&[thread(0), thread(1)], nanos(now), hung) else {
            now = f64::min(jobs[0].at, jobs[1].at);
            continue;
        };
        let job = &mut jobs[next];
        if job.at < now {
            job.at = now;
            job.regulator.resumed(nanos(now), false);
        }
        job.run(&loads[next], f64::INFINITY, 1);
        let to = job.stretches.last().map_or(now, |stretch| stretch.to);
        usage[next] += to - now;
        usage.iter_mut().for_each(|used| *used *= usage_decay(nanos(to - now)));
        now = to;
    }
}
