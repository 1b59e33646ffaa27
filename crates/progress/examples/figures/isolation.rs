//! Figure 9: two threads, a disk each, that run one at a time beside loads (section 9.5).

use crate::sim::{Job, Load};
use crate::turns::{self, Member};

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
    let [c, d] = jobs;
    let member = |job, i: usize| Member { job, weight: WEIGHTS[i], load: loads(NAMES[i]) };
    turns::run(&mut [member(c, 0), member(d, 1)], PHASES[PHASES.len() - 1].2);
}
