//! A simulated machine: one resource, a load that comes and goes, and a regulated job with two
//! metrics like the paper's defragmenter (section 9): moves and blocks moved.

use discnice_progress::model::quiet::{Others, QuietDetector, Signals};
use discnice_progress::model::{Config, Regulator, Targets, Testpoint, Verdict};
use discnice_units::Moment;

/// Seconds a move takes, and seconds a block, without contention; with the mean of seven blocks a
/// move this is the 480 ms between testpoints of section 9.6.
const SECONDS_A_MOVE: f64 = 0.2;
const SECONDS_A_BLOCK: f64 = 0.04;
const MEAN_BLOCKS: f64 = 7.0;
/// How much slower the job is under load: 1600 ms / 480 ms, section 9.6.
const SLOWDOWN: f64 = 10.0 / 3.0;
/// Spread of one testpoint's duration (standard deviation of its logarithm), after figure 8.
const SPREAD: f64 = 0.35;
/// How often a suspended job looks at the signals, in seconds.
const LOOK: f64 = 0.25;

/// The ideal time between testpoints in seconds.
pub const IDEAL: f64 = SECONDS_A_MOVE + SECONDS_A_BLOCK * MEAN_BLOCKS;

/// Small deterministic pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Uniform in 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (sum of twelve uniforms; tails are of no interest here).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Bursts of load: start and end in seconds, in order, not touching.
pub struct Load(pub Vec<(f64, f64)>);

impl Load {
    /// Bursts and gaps of 10 s to 15 min with a mean share that varies over a day (section 9.6),
    /// from a first burst of `first` seconds up to `end`.
    pub fn bursty(first: f64, end: f64, random: &mut Random) -> Self {
        let (mut bursts, mut at) = (vec![(0.0, first)], first);
        while at < end {
            let day = (at / 86_400.0 * std::f64::consts::TAU).sin();
            let length = |random: &mut Random, tilt: f64| {
                let even = 10.0 + 890.0 * random.uniform();
                (even * (1.0 + 0.5 * tilt)).clamp(10.0, 900.0)
            };
            at += length(random, -day);
            let burst = length(random, day);
            bursts.push((at, at + burst));
            at += burst;
        }
        Self(bursts)
    }

    fn next_change(&self, at: f64) -> (bool, f64) {
        let i = self.0.partition_point(|burst| burst.1 <= at);
        match self.0.get(i) {
            Some(&(start, end)) if start <= at => (true, end),
            Some(&(start, _)) => (false, start),
            None => (false, f64::INFINITY),
        }
    }

    /// Share of the time from `from` to `to` that is under load.
    pub fn share(&self, from: f64, to: f64) -> f64 {
        let inside = |burst: &(f64, f64)| (burst.1.min(to) - burst.0.max(from)).max(0.0);
        self.0.iter().map(inside).sum::<f64>() / (to - from)
    }

    /// Returns true if there is load at this moment.
    pub fn is_on(&self, at: f64) -> bool {
        self.next_change(at).0
    }

    /// When work that would take `alone` seconds without load, begun at `at`, is finished; and
    /// how much of that time was under load.
    fn finish(&self, mut at: f64, mut alone: f64) -> (f64, f64) {
        let mut loaded = 0.0;
        loop {
            let (on, change) = self.next_change(at);
            let pace = if on { SLOWDOWN } else { 1.0 };
            let stretch = (alone * pace).min(change - at);
            loaded += if on { stretch } else { 0.0 };
            at += stretch;
            alone -= stretch / pace;
            if alone <= 1e-9 {
                return (at, loaded);
            }
        }
    }
}

/// One stretch of running between two waits.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// When it began and ended, in seconds.
    pub from: f64,
    pub to: f64,
    /// Seconds of it under load.
    pub loaded: f64,
    /// Seconds that its progress should have taken by the targets in force; 0 in bootstrap.
    pub target: f64,
}

/// A regulated job on the simulated machine.
pub struct Job {
    pub regulator: Regulator,
    pub targets: Targets,
    detector: QuietDetector,
    /// Set if signals of the machine can be seen.
    signals: bool,
    random: Random,
    counters: [f64; 2],
    pub at: f64,
    pub stretches: Vec<Stretch>,
}

impl Job {
    pub fn new(config: &Config, signals: bool, seed: u64) -> Self {
        Self {
            regulator: Regulator::new(config),
            targets: Targets::default(),
            detector: QuietDetector::default(),
            signals,
            random: Random(seed),
            counters: [0.0; 2],
            at: 0.0,
            stretches: Vec::new(),
        }
    }

    /// The target duration of the mean progress between testpoints, in seconds.
    pub fn target(&self) -> Option<f64> {
        self.targets.iter().next()?.1.target_duration(&[1.0, MEAN_BLOCKS])
    }

    /// Runs until `end` seconds, or until `enough` testpoints were made.
    pub fn run(&mut self, load: &Load, end: f64, enough: usize) {
        let enough = self.stretches.len().saturating_add(enough);
        while self.at < end && self.stretches.len() < enough {
            self.step(load);
        }
    }

    fn step(&mut self, load: &Load) {
        let blocks = (-MEAN_BLOCKS * (1.0 - self.random.uniform()).ln()).ceil();
        let noise = (SPREAD * self.random.normal() - SPREAD * SPREAD / 2.0).exp();
        let alone = (SECONDS_A_MOVE + SECONDS_A_BLOCK * blocks) * noise;
        let (to, loaded) = load.finish(self.at, alone);
        self.counters[0] += 1.0;
        self.counters[1] += blocks;
        let target = self.targets.iter().next();
        let target = target.and_then(|(_, set)| set.target_duration(&[1.0, blocks]));
        let stretch = Stretch { from: self.at, to, loaded, target: target.unwrap_or(0.0) };
        self.stretches.push(stretch);
        let others = match self.signals {
            false => Others::Unknown,
            true if loaded == 0.0 => Others::Idle,
            true => Others::Busy,
        };
        let at = moment(to);
        let call = Testpoint { at, index: 0, metrics: &self.counters, others };
        let verdict = self.regulator.testpoint(&mut self.targets, &call);
        self.at = to;
        self.obey(verdict, load);
    }

    fn obey(&mut self, verdict: Verdict, load: &Load) {
        let (until, early_from) = match verdict {
            Verdict::Suspend(suspend) => (suspend.until, suspend.early_from),
            Verdict::Hold(until) => (until, None),
            _ => return,
        };
        let early_from = early_from.filter(|_| self.signals);
        self.detector.suspended();
        let until = until.since(Moment::FIRST).as_secs_f64();
        let mut early = false;
        while self.at < until && !early {
            let Some(from) = early_from else {
                self.at = until;
                break;
            };
            self.at = (self.at + LOOK).min(until);
            let disk = if load.is_on(self.at) { 40e6 } else { 0.0 };
            let quiet = self.detector.look(&Signals { disk, ..Signals::default() });
            early = quiet && moment(self.at) >= from && self.at < until;
        }
        self.regulator.resumed(moment(self.at), early);
    }

    /// Share of the time from `from` to `to` in which the job ran, and share of that under load.
    pub fn activity(&self, from: f64, to: f64) -> (f64, f64) {
        let inside = self.stretches.iter().filter(|s| s.from >= from && s.to <= to);
        let (ran, loaded) =
            inside.fold((0.0, 0.0), |sum, s| (sum.0 + s.to - s.from, sum.1 + s.loaded));
        (ran / (to - from), loaded / f64::max(ran, 1e-9))
    }
}

/// Rounded, so that a moment survives the way to seconds and back.
pub fn moment(seconds: f64) -> Moment {
    Moment((seconds * 1e9).round() as u64)
}
