//! The disk model: when would a real disk have answered?
//!
//! Pure: moments and offsets in, deadlines out. One head serves requests first in, first out. A
//! request that does not continue the stream of the last read waits for the arm (square root of
//! the distance), for the platter (the sector's angle is its offset modulo a track) and for its
//! data to pass. After a read the disk goes on reading up to `look_ahead` bytes past the last byte
//! asked for; a read inside that window waits for the head to get there, or not at all.
//!
//! Deadlines are absolute, so a late answer does not shift the model's clock.

use discnice_units::{Moment, Nanos};
use serde::{Deserialize, Serialize};

use super::profile::Profile;

/// An angle passed by less than this counts as not passed: the gap between two sectors.
const SECTOR_GAP: Nanos = Nanos(20_000);

/// What a request asks the disk to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read from the platter or the disk's own buffer.
    Read,
    /// Write through to the platter; the disk has no write cache.
    Write,
}

/// What the disk has done since it was made; times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Read requests answered from the look-ahead stream, without a seek.
    pub look_ahead_hits: u64,
    /// Arm movements.
    pub seeks: u64,
    /// Time the arm moved.
    pub seek_ns: u64,
    /// Time the head waited for the platter.
    pub rotation_ns: u64,
    /// Time in which at least one request was in service.
    pub busy_ns: u64,
}

/// The read that the disk is continuing by itself.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The head passes byte `position` at the moment `time`, and goes on from there.
    position: u64,
    time: Moment,
    /// End of the last read asked for; the head stops `look_ahead` bytes after it.
    consumed: u64,
}

/// A disk: a profile, a size, and where its head is.
#[derive(Debug)]
pub struct Model {
    profile: Profile,
    size: u64,
    head: u64,
    free_at: Moment,
    stream: Option<Stream>,
    counters: Counters,
}

impl Model {
    /// A disk of `size` bytes with its head at the first byte.
    #[must_use]
    pub fn new(profile: Profile, size: u64) -> Self {
        Self {
            profile,
            size: size.max(1),
            head: 0,
            free_at: Moment::FIRST,
            stream: None,
            counters: Counters::default(),
        }
    }

    /// What the disk has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Forgets the look-ahead buffer, as a disk does that was switched off and on.
    pub fn forget_buffer(&mut self) {
        self.stream = None;
    }

    /// The moment by which everything accepted so far is done: the answer to a flush.
    #[must_use]
    pub fn idle_at(&self) -> Moment {
        self.free_at.plus(self.profile.latency)
    }

    /// Accepts a request that arrives at `now`; returns the moment of its answer.
    ///
    /// Calls come in the order of arrival; answers come in the same order.
    pub fn accept(
        &mut self,
        now: Moment,
        operation: Operation,
        offset: u64,
        length: u64,
    ) -> Moment {
        let begin = now.max(self.free_at);
        let end = offset.saturating_add(length);
        self.count(operation, length);
        let finish = match operation {
            Operation::Read => match self.continue_stream(begin, offset, end) {
                Some(finish) => {
                    self.counters.look_ahead_hits += 1;
                    finish
                }
                None => self.seek_and_transfer(begin, offset, end),
            },
            Operation::Write => self.seek_and_transfer(begin, offset, end),
        };
        match (operation, &mut self.stream) {
            (Operation::Read, Some(stream)) => stream.consumed = end,
            (Operation::Read, None) if self.profile.look_ahead > 0 => {
                self.stream = Some(Stream { position: end, time: finish, consumed: end });
            }
            _ => self.stream = None,
        }
        self.counters.busy_ns += finish.since(begin).0;
        self.head = end;
        self.free_at = finish;
        finish.plus(self.profile.latency)
    }

    /// Answers from the running stream, if `offset` lies in its window.
    fn continue_stream(&mut self, begin: Moment, offset: u64, end: u64) -> Option<Moment> {
        let look_ahead = self.profile.look_ahead;
        let mut stream = self.stream?;
        let limit = stream.consumed.saturating_add(look_ahead);
        if !(stream.consumed..=limit).contains(&offset) {
            return None;
        }
        let stopped_at = stream.time.plus(self.transfer_time(limit - stream.position.min(limit)));
        if begin > stopped_at {
            // The buffer was full: the head starts again when the platter has come round.
            let wait = self.rotation_wait(begin, limit);
            stream.position = limit;
            stream.time = begin.plus(wait);
            if end > limit {
                self.counters.rotation_ns += wait.0;
            }
        }
        self.stream = Some(stream);
        if end <= stream.position {
            return Some(begin);
        }
        Some(begin.max(stream.time.plus(self.transfer_time(end - stream.position))))
    }

    fn seek_and_transfer(&mut self, begin: Moment, offset: u64, end: u64) -> Moment {
        let seek = self.seek_time(self.position_at(begin).abs_diff(offset));
        if seek > Nanos(0) {
            self.counters.seeks += 1;
            self.counters.seek_ns += seek.0;
        }
        let arrived = begin.plus(seek);
        let wait = self.rotation_wait(arrived, offset);
        self.counters.rotation_ns += wait.0;
        self.stream = None;
        arrived.plus(wait).plus(self.transfer_time(end - offset))
    }

    /// Where the head is: it may have run ahead of the last read.
    fn position_at(&self, now: Moment) -> u64 {
        match self.stream {
            None => self.head,
            Some(stream) => {
                let passed = self.profile.transfer.units_in(now.since(stream.time));
                let limit = stream.consumed.saturating_add(self.profile.look_ahead);
                stream.position.saturating_add(passed).min(limit)
            }
        }
    }

    fn seek_time(&self, distance: u64) -> Nanos {
        if distance == 0 {
            return Nanos(0);
        }
        let share = (distance as f64 / self.size as f64).min(1.0).sqrt();
        self.profile.seek_min.plus(Nanos((self.profile.seek_span.0 as f64 * share) as u64))
    }

    /// How long until `offset` passes the head, if the head is over its track at `at`.
    fn rotation_wait(&self, at: Moment, offset: u64) -> Nanos {
        let turn = self.profile.rotation;
        if turn.0 == 0 {
            return Nanos(0);
        }
        // A byte passes the head at the same phase of every turn: that of a transfer from byte 0.
        let phase = self.transfer_time(offset).0 % turn.0;
        let wait = Nanos((phase + turn.0 - at.0 % turn.0) % turn.0);
        if turn.minus(wait) < SECTOR_GAP { Nanos(0) } else { wait }
    }

    fn transfer_time(&self, bytes: u64) -> Nanos {
        self.profile.transfer.time_for(bytes)
    }

    fn count(&mut self, operation: Operation, length: u64) {
        let counters = &mut self.counters;
        match operation {
            Operation::Read => {
                counters.reads += 1;
                counters.read_bytes += length;
            }
            Operation::Write => {
                counters.writes += 1;
                counters.write_bytes += length;
            }
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
