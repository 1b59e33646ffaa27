//! How an observation was made, and how far charges explain what it saw.

use discnice_units::{Moment, Nanos};

use super::totals::{Moved, Work};
use crate::policy::throttle;
use crate::primitive::{AtomicU64, Ordering};

/// Limits on how charges explain what a kind of medium moves.
#[derive(Debug, Clone, Copy)]
pub(in crate::board) struct Kind {
    /// Bytes coming in that were charged and are still on their way, at most.
    pub(super) inward_most: u64,
    /// Bytes going out that were charged and are still on their way, at most.
    pub(super) outward_most: u64,
    /// Half-life of charges that the medium never moves.
    half_life: Nanos,
}

impl Kind {
    /// No device has more reads in flight; written data waits for write-back, and may be deleted
    /// before that.
    pub(in crate::board) const DISK: Self = Self {
        inward_most: 64 << 20,
        outward_most: 4 << 30,
        half_life: Nanos(30 * Nanos::SECOND.0),
    };
    //= rate-windows/5.1-checkpoint
    /// What waits in the buffers of sockets (tcp(7), tcp_wmem). As long as they stay full nothing of it moves
    /// that is not charged anew; it must not hide the others for long.
    pub(in crate::board) const NETWORK: Self =
        Self { inward_most: 8 << 20, outward_most: 8 << 20, half_life: Nanos(2 * Nanos::SECOND.0) };

    /// What a pool of charges does not explain of `moved` bytes.
    pub(super) fn explain(
        &self,
        pool: &AtomicU64,
        most: u64,
        own: u64,
        moved: u64,
        gap: Nanos,
    ) -> u64 {
        let before = throttle::decayed(pool.load(Ordering::Relaxed), gap, self.half_life);
        let (unexplained, rest) = throttle::explain(before, own, moved, most);
        pool.store(rest, Ordering::Relaxed);
        unexplained
    }
}

/// What a medium did between two observations.
#[derive(Debug, Clone, Copy)]
pub(in crate::board) struct News {
    pub(in crate::board) moved: Moved,
    /// What of it classes were charged, or were to be.
    pub(in crate::board) own: Moved,
    /// What it has had to do since the machine started.
    pub(in crate::board) work: Work,
    /// Requests that it has done, and for how long these waited.
    pub(in crate::board) done: (u64, Nanos),
}

/// How an observation was made.
#[derive(Debug, Clone, Copy)]
pub(in crate::board) struct Look {
    pub(in crate::board) now: Moment,
    /// The time since the last one.
    pub(in crate::board) gap: Nanos,
    /// What is known where it is known what all members have moved.
    pub(in crate::board) exact: Option<Exact>,
    /// Tasks of no class that wait for a disk and have files on this one.
    pub(in crate::board) waiting: u64,
}

/// See [`Look::exact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::board) struct Exact {
    /// Bytes that members have caused while the disks were asked.
    pub(in crate::board) late: Moved,
    /// Bytes of the page cache that were to be written before.
    pub(in crate::board) unwritten: u64,
    /// Tasks of no class that wait for some disk.
    pub(in crate::board) strangers: u64,
}
