//! What the others are told of a member that cannot tell them itself, or only later.

use discnice_budget::member::Charged;
use discnice_sys::procfs;
use discnice_units::Nanos;

use super::Watched;
use crate::process;

/// Of more threads it is not asked what each does.
const MANY: u32 = 64;
/// What threads did then they may do again at any moment.
const LATELY: Nanos = Nanos(Nanos::SECOND.0);

impl Watched {
    /// What it had moved at the last look and was not charged yet.
    #[must_use]
    pub fn ahead(&self) -> Charged {
        let Some(member) = self.member() else { return Charged::default() };
        let (own, charged) = (self.account.own(), member.books().charged());
        Charged {
            read: own.read.saturating_sub(charged.read),
            written: own.written.saturating_sub(charged.written),
        }
    }

    /// Bytes that it had moved in all when that was last seen to grow.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.seen.0
    }

    /// Returns when the process was last seen to have moved something, however that was charged.
    #[must_use]
    pub fn seen_moving(&self) -> Nanos {
        self.seen.1
    }

    /// How many of its threads wait for disks, at most: a moment ago others of them may have. `None` where it has too many to look.
    pub fn waiting(&mut self, now: Nanos) -> Option<u64> {
        let (mut threads, mut waiting) = (0, 0);
        for thread in process::threads(self.id()) {
            threads += 1;
            if threads > MANY {
                return None;
            }
            waiting += u64::from(procfs::stat(thread).is_some_and(|stat| stat.state == b'D'));
        }
        let (most, at) = self.waiting;
        if waiting >= most || now >= at.plus(LATELY) {
            self.waiting = (waiting, now);
        }
        // The first look at one may have come between two waits.
        Some(self.waiting.0.max(1))
    }

    /// Notes whether the last look found more than the one before.
    pub(super) fn see_moving(&mut self, now: Nanos) {
        let own = self.account.own();
        let moved = own.read.saturating_add(own.written);
        if moved > self.seen.0 {
            self.seen = (moved, now);
        }
    }
}
