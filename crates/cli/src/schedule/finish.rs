//! The rate at which a job ends by a moment: the lowest that does, so that it is in the way as little as can be.
//!
//! What is left is known of a job with a bound of its bytes (`--disk-total`), and of one that reads a large file: what is behind the offset in
//! the largest file that it reads, times what it has moved for each byte of that so far.

use std::time::{Duration, Instant};

use discnice_ledger::policy::Resource;
use discnice_units::Rate;

use super::calendar::clock;
use super::job::Job;
use super::usual::{Guardian, Paced, set_rate};
use super::wall_time::WallTime;
use crate::classes::MappedClass;
use crate::explanation;
use crate::family::Family;
use crate::output::tell;
use crate::reading::{Reading, largest};

/// How often the rate is set.
const LOOK: Duration = Duration::from_millis(500);
/// No lower rate.
const LEAST: u64 = 256 << 10;
/// It is to end so much of its time before the moment, but no more than a minute.
const SPARE: u32 = 20;
const SPARE_MOST: Duration = Duration::from_secs(60);
/// A smaller change is none, in percent.
const WORTH: u64 = 3;
/// What a job has moved for a byte of its file is known after this.
const KNOWN: u64 = 1 << 20;
/// It is told after this that nothing is known.
const PATIENCE: Duration = Duration::from_secs(5);
/// A job that is to end by a moment.
#[derive(Debug)]
pub struct Finish {
    by: WallTime,
    /// How long before.
    spare: Duration,
    /// No higher rate.
    most: Rate,
    /// Its usual rate holds while nothing is known of what is left, and once the moment has come.
    paced: Paced,
    /// Of a class that stays, with a rate that is not the usual one.
    guardian: Option<Guardian>,
    next: Instant,
    begun: Instant,
    /// Where its file was, and what the class had moved, when that file was seen first.
    first: Option<(Reading, u64)>,
    /// The class, with those of its children.
    family: Family,
    told: bool,
}

impl Finish {
    /// `most`: the highest rate; `usual`: the one that is there.
    pub fn new(found: MappedClass, by: WallTime, most: Rate, usual: Rate) -> Self {
        let (now, paced) = (Instant::now(), Paced { set: usual, usual });
        let spare = (by.left() / SPARE).min(SPARE_MOST);
        let (guardian, first, family) = (None, None, Family::of(found));
        Self { by, spare, most, paced, guardian, next: now, begun: now, first, family, told: false }
    }

    /// Sets the rate, now and then.
    pub fn look(&mut self, job: &Job) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + LOOK;
        let before = job.found.class.total().threshold();
        if self.paced.set != before {
            // `class set`: the user's own number.
            (self.most, self.paced) = (before, Paced { set: before, usual: before });
        }
        let rate = match self.left(job) {
            _ if self.by.has_come() => {
                self.tell_late(&job.found);
                self.paced.usual
            }
            Some(left) => needed(left, self.by.left().saturating_sub(self.spare), self.most),
            None => {
                self.tell_unknown(now, &job.found);
                self.paced.usual
            }
        };
        if is_other(self.paced.set, rate) {
            self.paced.set = rate;
            self.guard(job.found);
            set_rate(&job.found, rate);
        }
    }

    /// Tells a guardian what is about to be set. A class of the job's own ends with it.
    fn guard(&mut self, found: MappedClass) {
        if self.guardian.is_none() && !found.is_automatic() {
            self.guardian = Guardian::start(found).ok();
        }
        self.guardian.iter().for_each(|guardian| guardian.tell(self.paced));
    }

    /// Gives the class its usual rate: other jobs of it go on, and later ones begin there.
    pub fn end(&self, found: &MappedClass) {
        self.paced.end(found);
    }

    /// Bytes that are yet to be moved, if that is known.
    fn left(&mut self, job: &Job) -> Option<u64> {
        let class = job.found.class;
        if let Some(most) = class.disk_total().filter(|_| !class.is_per_child()) {
            return Some(most.get().saturating_sub(class.disk_total_used().get()));
        }
        self.family.look();
        let moved = self.family.counters().total(Resource::Total);
        let reading = largest(&job.processes())?;
        let (first, before) = match self.first {
            Some(first) if first.0.file == reading.file => first,
            _ => *self.first.insert((reading, moved)),
        };
        let (passed, cost) =
            (reading.offset.saturating_sub(first.offset), moved.saturating_sub(before));
        let rest = u128::from(reading.size.saturating_sub(reading.offset));
        let left = match passed {
            0..KNOWN => rest,
            _ => rest * u128::from(cost) / u128::from(passed),
        };
        u64::try_from(left).ok().filter(|_| reading.offset < reading.size)
    }

    /// Tells that nothing is known, unless it was: once a file has been read to its end, the job ends or begins with another.
    fn tell_unknown(&mut self, now: Instant, found: &MappedClass) {
        if !self.told && self.first.is_none() && now > self.begun + PATIENCE {
            self.told = true;
            let usual = self.usual_in_words(found);
            tell!(
                "discnice: how much is left is not known, as it reads no large file and there is no --disk-total: {usual} until the end"
            );
        }
    }

    fn tell_late(&mut self, found: &MappedClass) {
        if !std::mem::replace(&mut self.told, true) {
            let (clock, usual) = (clock(), self.usual_in_words(found));
            tell!(
                "discnice: it is {clock} and the job has not ended (--finish-by); it goes on at {usual}"
            );
        }
    }

    fn usual_in_words(&self, found: &MappedClass) -> String {
        match self.paced.usual {
            Rate::UNLIMITED => self.paced.usual.to_string(),
            rate => format!("{rate}{}", explanation::when(found.class.limits().when())),
        }
    }
}

/// The lowest rate at which so much is moved in so much time, within bounds.
fn needed(left: u64, time: Duration, most: Rate) -> Rate {
    let millis = time.as_millis().max(1);
    let rate = u64::try_from(u128::from(left) * 1000 / millis).unwrap_or(u64::MAX);
    Rate::per_second(rate.clamp(LEAST, u64::MAX - 1)).min(most)
}

/// Whether a change is worth to be made.
fn is_other(one: Rate, other: Rate) -> bool {
    let (low, high) = (one.min(other).get(), one.max(other).get());
    high - low > low / 100 * WORTH
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_ends_in_time_where_that_can_be() {
        let most = Rate::per_second(50 * MIB);
        let (mut left, mut second, mut highest) = (6_000 * MIB, 0, Rate::per_second(0));
        while left > 0 {
            let rate = needed(left, Duration::from_secs(570u64.saturating_sub(second)), most);
            highest = highest.max(rate);
            left = left.saturating_sub(rate.get());
            second += 1;
        }
        assert!((560..=571).contains(&second), "{second} s of 600");
        assert!(highest <= Rate::per_second(11 * MIB), "a tenth of it a second");
    }

    #[test]
    fn never_above_what_is_allowed() {
        let most = Rate::per_second(5 * MIB);
        assert_eq!(needed(u64::MAX, Duration::from_secs(60), most), most);
        assert_eq!(needed(60 * MIB, Duration::ZERO, most), most);
        assert_eq!(needed(0, Duration::from_secs(60), most), Rate::per_second(LEAST));
        let slow = Rate::per_second(1000);
        assert_eq!(needed(0, Duration::from_secs(60), slow), slow);
        assert!(!needed(u64::MAX, Duration::ZERO, Rate::UNLIMITED).is_unlimited());
    }
}
