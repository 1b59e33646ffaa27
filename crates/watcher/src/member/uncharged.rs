//! What the others are told of a member that cannot tell them itself, or only later.

use discnice_ledger::member::Charged;
use discnice_units::Nanos;

use super::Watched;

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

    /// Notes whether the last look found more than the one before.
    pub(super) fn see_moving(&mut self, now: Nanos) {
        let own = self.account.own();
        let moved = own.read.saturating_add(own.written);
        if moved > self.seen.0 {
            self.seen = (moved, now);
        }
    }
}
