//! What the others are told of a member that cannot tell them itself, or only later.

use discnice_ledger::member::Charged;
use discnice_units::Moment;

use super::Watched;

impl Watched {
    /// What it had moved at the last look and was not charged yet.
    #[must_use]
    pub fn ahead(&self) -> Charged {
        let Some(member) = self.member() else { return Charged::default() };
        self.accounting.uncharged(member)
    }

    /// Bytes that it had moved in all when that was last seen to grow.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.accounting.seen_moving().0
    }

    /// Returns when the process was last seen to have moved something, however that was charged.
    #[must_use]
    pub fn seen_moving(&self) -> Moment {
        self.accounting.seen_moving().1
    }
}
