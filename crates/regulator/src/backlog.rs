//! The backlog: written data of a class that gives way that is on its way to a disk while nothing holds the class.
//!
//! The block layer takes hundreds of requests of a megabyte, seconds of a hard disk's time, before it makes a writer wait.
//! Another program's first read or fsync(2) would stand behind all of them, and its journal commit wait for the data
//! (ext4, ordered mode). So a thread that writes waits for the disk itself, each time it has started as much as the disk
//! writes in [`TIME`]. How fast that is it learns from how long that took.

use core::cell::Cell;

use discnice_units::{Moment, Nanos};

use crate::Regulator;
use crate::host::Host;

/// So much of a disk's time may be on its way.
const TIME: Nanos = Nanos::from_millis(100);
/// As long as no disk has been timed: a hard disk's, which writes small files.
const FIRST: u64 = 1 << 20;
/// Less is not worth a wait each, and more no disk needs to be busy.
const LEAST: u64 = 256 << 10;
const MOST: u64 = 64 << 20;
/// Of the portion that is waited for this part may still be on its way: the next is started before the disk is idle.
const PART_LEFT: u64 = 2;

/// Of so many bytes that were started together, how many may still be on their way when the wait for them ends.
#[must_use]
pub fn left_of(bytes: u64) -> u64 {
    bytes / PART_LEFT
}

/// What one thread, or one process that is held from outside, has started to write; all zeroes is a fresh one.
#[derive(Debug, Default)]
pub struct Backlog {
    /// Bytes since it waited last, and when the first of them was started.
    started: Cell<u64>,
    since: Cell<u64>,
    /// What the disk writes in [`TIME`]; zero while it is not known.
    most: Cell<u64>,
}

impl Backlog {
    /// Notes that `bytes` are started to be written; returns whether to wait for the disk.
    pub fn add(&self, now: Moment, bytes: u64) -> bool {
        if self.started.get() == 0 {
            self.since.set(now.0);
        }
        self.started.set(self.started.get().saturating_add(bytes));
        self.started.get() >= self.most()
    }

    /// So many bytes may be started before the disk is waited for.
    pub fn most(&self) -> u64 {
        match self.most.get() {
            0 => FIRST,
            most => most,
        }
    }

    /// Notes that the disk has written all but a little of it.
    pub fn clear(&self, now: Moment) {
        let took = now.minus(Nanos(self.since.get())).0.max(1);
        let bytes = u128::from(self.started.take()) * u128::from(TIME.0) / u128::from(took);
        self.most.set(u64::try_from(bytes).unwrap_or(MOST).clamp(LEAST, MOST));
    }
}

impl<H: Host> Regulator<'_, H> {
    /// Starts writing a range's dirty pages, so many bytes, while nothing holds the class; waits for the disk if much is on its
    /// way. A length of zero is all up to the file's end.
    pub(crate) fn write_back_freely(
        &self,
        backlog: &Backlog,
        fd: i32,
        (offset, length): (u64, u64),
        bytes: u64,
    ) {
        let waits = self.class.yields() && backlog.add(self.host.now(), bytes);
        self.host.write_back(fd, offset, length);
        if waits {
            self.host.await_written(fd, (offset, length), left_of(bytes));
            backlog.clear(self.host.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn as_much_is_started_as_the_disk_writes_in_a_tenth_of_a_second() {
        let backlog = Backlog::default();
        assert!(!backlog.add(Moment::FIRST, MIB / 2));
        assert!(backlog.add(Moment::FIRST, MIB / 2), "nothing is known of the disk");
        // 40 MiB/s.
        backlog.clear(Moment(TIME.0 / 4));
        assert_eq!(backlog.most(), 4 * MIB);
        for (mib_per_second, most) in [(400, 40 * MIB), (5, MIB / 2), (1, LEAST), (50_000, MOST)] {
            assert!((0..MOST / MIB).any(|_| backlog.add(Moment::FIRST, MIB)));
            let bytes = backlog.started.get();
            backlog.clear(Moment(bytes * Nanos::SECOND.0 / (mib_per_second * MIB)));
            assert!(most.abs_diff(backlog.most()) <= 1, "{mib_per_second}");
        }
    }
}
