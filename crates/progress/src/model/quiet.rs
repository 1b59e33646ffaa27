//! Beyond the paper: has the machine gone quiet?
//!
//! A suspended job uses nothing, so whatever the machine still does is done for others. The
//! detector keeps two memories of a few cheap signals: how busy others were when the job was made
//! to step aside, and how busy they are when the job's progress is good. The machine counts as
//! quiet when every signal is near its idle floor, near its level of good times, or far below its
//! level at the suspension, twice in a row. No resource is singled out: a signal that was never
//! high decides nothing.

use discnice_units::{Moment, Nanos};

/// How many signals there are.
pub const SIGNALS: usize = 7;

/// What others do to the machine, as rates over the last look. All are at least zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// Processors in use by others, in processors.
    pub cpu: f64,
    /// Disk traffic of others, in bytes a second.
    pub disk: f64,
    /// Time that the busiest disk had requests in flight, as a share.
    pub disk_busy_frac: f64,
    /// Network traffic of others, in bytes a second, both ways.
    pub network: f64,
    /// Share of time in which some task waited for a processor (pressure stall information).
    pub cpu_pressure_frac: f64,
    /// Share of time in which some task waited for a disk.
    pub io_pressure_frac: f64,
    /// Share of time in which some task waited for memory.
    pub memory_pressure_frac: f64,
}

/// Below this, a signal is what an idle machine shows. Of a disk with seeks, a database that waits for
/// each of its transactions gets no more than some 300 KiB a second.
const FLOOR: [f64; SIGNALS] = [0.2, 128.0 * 1024.0, 0.05, 256.0 * 1024.0, 0.05, 0.05, 0.02];
/// Signals that the job's own running raises (its network traffic has no account of its own), so that they say nothing while it runs.
const OWN: [bool; SIGNALS] = [false, false, true, true, true, true, true];
/// Below this share of its level at the suspension, a signal has dropped.
const DROPPED_FRAC: f64 = 0.2;
/// Up to this much above its level of good times, a signal is as in good times.
const AS_GOOD: f64 = 1.25;
/// Weight of a new look in the level of good times.
const GOOD_WEIGHT: f64 = 0.1;
/// Looks that must agree.
const LOOKS: u32 = 2;
/// Time for which a silent suspension is believed. What only a suspension shows, as others' use of the network, is looked for
/// anew then.
const BELIEVED_FOR: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Share of time in which some task waited, the job's included, below which this machine holds up none.
const UNSTALLED: f64 = 0.05;

impl Signals {
    fn array(&self) -> [f64; SIGNALS] {
        [
            self.cpu,
            self.disk,
            self.disk_busy_frac,
            self.network,
            self.cpu_pressure_frac,
            self.io_pressure_frac,
            self.memory_pressure_frac,
        ]
    }

    /// Returns true if every signal is below `bound`, leaving out those that the running job's own
    /// work raises.
    fn below(&self, bound: &[f64; SIGNALS]) -> bool {
        self.array().iter().zip(bound).zip(OWN).all(|((now, bound), own)| own || now <= bound)
    }
}

/// What others do to the machine while the job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Others {
    /// Unknown.
    #[default]
    Unknown,
    /// Nothing: every signal is at its idle floor.
    Idle,
    /// Nothing, nor did they while the job was suspended, and the job itself waits neither for processors, disks nor memory: what
    /// slows it down is not on this machine.
    Elsewhere,
    /// No more than what the job's progress was good with.
    AsUsual,
    /// More than that.
    Busy,
}

impl Others {
    /// Returns true if others do nothing on this machine.
    #[must_use]
    pub fn are_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Elsewhere)
    }
}

//= ms-manners/9.4-overshoot
/// Decides whether a suspended job may probe early.
#[derive(Debug, Clone, Default)]
pub struct QuietDetector {
    /// Levels in good times; zero until observed.
    good: [f64; SIGNALS],
    has_seen_good: bool,
    at_suspension: [f64; SIGNALS],
    agreeing: u32,
    /// The last suspension showed others at work to its end, and nothing has spoken against it since.
    others_stayed: bool,
    /// Looks of this suspension; `None` once one showed anything.
    silent_looks: Option<u32>,
    /// The last suspension was silent, which is still believed.
    is_believed: bool,
    /// Since when the job has run after it, as far as that was looked at.
    runs_since: Option<Moment>,
}

impl QuietDetector {
    /// Notes good progress; learns what others do meanwhile, if that was observed.
    pub fn good(&mut self, signals: Option<&Signals>) {
        self.others_stayed = false;
        let Some(signals) = signals else { return };
        // The first look is the average so far: a level that rose from nothing would take a dozen
        // looks to reach what serves the job all the time (such as decryption of its disk), and be
        // exceeded by it until then.
        let weight = if self.has_seen_good { GOOD_WEIGHT } else { 1.0 };
        self.has_seen_good = true;
        for ((level, now), own) in self.good.iter_mut().zip(signals.array()).zip(OWN) {
            if !own {
                *level += weight * (now - *level);
            }
        }
    }

    //= ms-manners/2-idle-detection
    //= ms-manners/3-external-resources
    /// What others do, from a look taken while the job runs. What the last suspension showed weighs
    /// more: it could see everything, and beside the job others may get too little to be noticed. `stalled_frac` tells the
    /// share of time in which some task, the job's included, waited for a processor, a disk or memory, if that is known.
    #[must_use]
    pub fn while_running(
        &mut self,
        at: Moment,
        signals: &Signals,
        stalled_frac: impl FnOnce() -> Option<f64>,
    ) -> Others {
        if self.others_stayed {
            return Others::Busy;
        }
        // Asked at each look while its answer may matter: it tells of the time since the last one.
        let stalled_frac = if self.is_believed { stalled_frac() } else { None };
        let since = *self.runs_since.get_or_insert(at);
        let is_idle = signals.below(&FLOOR);
        self.is_believed &= is_idle && at.since(since) < BELIEVED_FOR;
        if is_idle {
            let is_unstalled = stalled_frac.is_some_and(|share| share <= UNSTALLED);
            let is_elsewhere = is_unstalled && self.is_believed;
            return if is_elsewhere { Others::Elsewhere } else { Others::Idle };
        }
        let usual: [f64; SIGNALS] = std::array::from_fn(|i| self.usual(i));
        if signals.below(&usual) { Others::AsUsual } else { Others::Busy }
    }

    /// Up to here, signal `i` is as in good times.
    fn usual(&self, i: usize) -> f64 {
        FLOOR[i].max(AS_GOOD * self.good[i])
    }

    /// A suspension begins.
    pub fn suspended(&mut self) {
        self.at_suspension = [0.0; SIGNALS];
        self.agreeing = 0;
        self.others_stayed = false;
        self.silent_looks = Some(0);
        (self.is_believed, self.runs_since) = (false, None);
    }

    //= ms-manners/4.2-correlation
    /// One look while suspended; whether the machine now counts as quiet.
    pub fn look(&mut self, signals: &Signals) -> bool {
        let now = signals.array();
        for (level, value) in self.at_suspension.iter_mut().zip(now) {
            *level = level.max(value);
        }
        let quiet =
            (0..SIGNALS).all(|i| now[i] <= self.usual(i).max(DROPPED_FRAC * self.at_suspension[i]));
        self.agreeing = if quiet { self.agreeing + 1 } else { 0 };
        self.others_stayed = !quiet;
        let silent = now.iter().zip(FLOOR).all(|(now, floor)| *now <= floor);
        self.silent_looks = self.silent_looks.filter(|_| silent).map(|looks| looks + 1);
        self.is_believed = self.silent_looks >= Some(LOOKS);
        self.agreeing >= LOOKS
    }
}

#[cfg(test)]
mod tests;
