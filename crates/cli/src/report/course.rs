//! How the meters of a job's classes move while it runs, in bounded memory however long it runs.

use std::time::{Duration, Instant, SystemTime};

use discnice_ledger::policy::Resource;
use discnice_units::Rate;
use serde::Serialize;

use crate::counters::Counters;
use crate::family::Family;
use crate::launch::LOOK;

/// Looks to a tick.
pub const LOOKS: u32 = 5;
/// What the finest sample covers.
const TICK: Duration = LOOK.saturating_mul(LOOKS);
/// Most samples that are kept; when there are more, each two neighbours become one.
const SAMPLES: usize = 2048;

/// What happened in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// End of the interval, in seconds since the start of the job.
    pub seconds: f64,
    /// Bytes read from disks in it.
    pub read_bytes: u64,
    /// Bytes written to disks in it.
    pub written_bytes: u64,
    /// Calls on names and inodes in it.
    pub metadata_operations: u64,
    /// Bytes sent over the network in it.
    pub sent_bytes: u64,
    /// Bytes received from the network in it.
    pub received_bytes: u64,
    /// Waits that ended in it.
    pub waits: u64,
    /// Seconds that these took; longer than the interval when several threads waited.
    pub waited_seconds: f64,
    /// The threshold of all disk traffic at its end, in bytes a second.
    pub limit_total: Option<u64>,
}

impl Sample {
    /// Returns both as one sample, of which `later` is the end.
    pub fn merged(self, later: Self) -> Self {
        Self {
            seconds: later.seconds,
            read_bytes: self.read_bytes + later.read_bytes,
            written_bytes: self.written_bytes + later.written_bytes,
            metadata_operations: self.metadata_operations + later.metadata_operations,
            sent_bytes: self.sent_bytes + later.sent_bytes,
            received_bytes: self.received_bytes + later.received_bytes,
            waits: self.waits + later.waits,
            waited_seconds: self.waited_seconds + later.waited_seconds,
            limit_total: later.limit_total,
        }
    }
}

/// A rate as JSON has it: `None` without a limit.
pub fn limit(rate: Rate) -> Option<u64> {
    (!rate.is_unlimited()).then(|| rate.get())
}

/// The samples of a job.
#[derive(Debug)]
pub struct Course {
    /// By the clock, which may be set while the job runs, and goes on while the machine sleeps.
    started: SystemTime,
    begun: Instant,
    /// How long the job took, once it has ended.
    took: Option<Duration>,
    first: Counters,
    last: Counters,
    samples: Vec<Sample>,
    /// Ticks that the last sample still lacks.
    missing: u32,
    /// Ticks of a whole sample.
    ticks: u32,
}

impl Course {
    /// Begins now.
    pub fn begin(family: &Family) -> Self {
        let first = family.counters();
        Self {
            started: SystemTime::now(),
            begun: Instant::now(),
            took: None,
            first,
            last: first,
            // Grows as it is needed: a job that may have little memory gets it.
            samples: Vec::new(),
            missing: 0,
            ticks: 1,
        }
    }

    /// Notes that the job has ended: what is looked at later belongs to this moment.
    pub fn end(&mut self) {
        self.took.get_or_insert_with(|| self.begun.elapsed());
    }

    /// When the job began.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// Time since the beginning, until the end of the job.
    pub fn elapsed(&self) -> Duration {
        self.took.unwrap_or_else(|| self.begun.elapsed())
    }

    /// The time that a sample covers; the last one may be shorter.
    pub fn interval(&self) -> Duration {
        TICK * self.ticks
    }

    /// Looks at the classes; called at every fifth [`LOOK`], [`LOOKS`].
    pub fn tick(&mut self, family: &Family) {
        let counters = family.counters();
        let moved = counters.since(&self.last);
        self.last = counters;
        self.add(Sample {
            seconds: self.elapsed().as_secs_f64(),
            read_bytes: moved.total(Resource::Read),
            written_bytes: moved.total(Resource::Write),
            metadata_operations: moved.total(Resource::Metadata),
            sent_bytes: moved.total(Resource::NetUp),
            received_bytes: moved.total(Resource::NetDown),
            waits: moved.waits,
            waited_seconds: moved.waited,
            limit_total: limit(family.own().class.total().rate()),
        });
    }

    fn add(&mut self, sample: Sample) {
        match self.samples.last_mut() {
            Some(last) if self.missing > 0 => {
                *last = last.merged(sample);
                self.missing -= 1;
            }
            _ => {
                if self.samples.len() == SAMPLES {
                    self.coarsen();
                }
                self.samples.push(sample);
                self.missing = self.ticks - 1;
            }
        }
    }

    /// Makes one sample of two neighbours.
    fn coarsen(&mut self) {
        self.samples = self
            .samples
            .chunks(2)
            .filter_map(|pair| pair.iter().copied().reduce(Sample::merged))
            .collect();
        self.ticks *= 2;
    }

    /// The samples so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Everything since the beginning.
    pub fn total(&self) -> Counters {
        self.last.since(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::counters::tests::counters;

    #[test]
    fn nothing_from_before_the_course_is_in_its_total() {
        let begun = Course { first: counters(5), last: counters(7), ..course() };
        assert_eq!(begun.total(), counters(2));
        let back = Course { first: counters(7), last: counters(5), ..course() };
        assert_eq!(back.total(), counters(0), "what was credited counts as nothing");
    }

    #[test]
    fn what_is_done_after_the_end_takes_none_of_its_time() {
        let mut course = course();
        course.end();
        let took = course.elapsed();
        std::thread::sleep(Duration::from_millis(2));
        course.end();
        assert_eq!(course.elapsed(), took);
        assert_eq!(course.started(), UNIX_EPOCH, "whatever the clock says at the end");
    }

    fn course() -> Course {
        Course {
            started: UNIX_EPOCH,
            begun: Instant::now(),
            took: None,
            first: counters(0),
            last: counters(0),
            samples: Vec::new(),
            missing: 0,
            ticks: 1,
        }
    }

    fn sample(tick: usize) -> Sample {
        Sample {
            seconds: (tick + 1) as f64 / 10.0,
            read_bytes: 1,
            written_bytes: tick as u64,
            metadata_operations: 3,
            sent_bytes: 0,
            received_bytes: 0,
            waits: 2,
            waited_seconds: 0.5,
            limit_total: Some(tick as u64),
        }
    }

    #[test]
    fn a_week_fits() {
        const WEEK: usize = 7 * 24 * 3600 * 10;
        let mut course = course();
        for tick in 0..WEEK {
            course.add(sample(tick));
            assert!(course.samples.len() <= SAMPLES);
        }
        assert!(course.samples.len() >= SAMPLES / 2);
        let sum = |of: fn(&Sample) -> u64| course.samples.iter().map(of).sum::<u64>();
        assert_eq!(sum(|sample| sample.read_bytes), WEEK as u64);
        assert_eq!(sum(|sample| sample.waits), 2 * WEEK as u64);
        let interval = course.interval().as_secs_f64();
        for pair in course.samples.windows(2).rev().skip(1) {
            assert!((pair[1].seconds - pair[0].seconds - interval).abs() < 1e-6);
        }
        assert_eq!(course.samples.last().map(|last| last.limit_total), Some(Some(WEEK as u64 - 1)));
    }
}
