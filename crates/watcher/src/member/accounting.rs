//! What one process moved, and what of it is to be charged.

use discnice_ledger::member::Charged;
use discnice_ledger::{Class, Member};
use discnice_units::Moment;

use crate::accounting::allowed_lead::Ahead;
use crate::accounting::unlinked_files::UnlinkedFiles;
use crate::accounting::{Io, OwnAccount, Rest};
use crate::tuning;

/// The accounting of one process.
#[derive(Debug)]
pub(super) struct Accounting {
    /// Its own account.
    pub(super) account: OwnAccount,
    /// Bytes that were dropped unwritten, and were credited for that.
    cancelled: u64,
    /// What it has dirtied in files without a name.
    unlinked: UnlinkedFiles,
    /// How far its account is ahead of its books, if it charges itself.
    pub(super) ahead: Ahead,
    /// Until when children may end that are not found yet; zero for no more.
    unknown_until: Moment,
    /// How much it had moved when that was seen to grow last, and when that was.
    seen: (u64, Moment),
}

impl Accounting {
    /// Begins with an account, and what was dirty in unlinked files before anything was charged.
    pub(super) fn new(account: OwnAccount, unlinked: UnlinkedFiles) -> Self {
        let cancelled = account.own().cancelled;
        let (ahead, unknown_until, seen) = (Ahead::default(), Moment::FIRST, (0, Moment::FIRST));
        Self { account, cancelled, unlinked, ahead, unknown_until, seen }
    }

    /// Takes what no thread did for that of children for a moment, as the process was attached with
    /// children that are not found yet.
    pub(super) fn expect_unknown_children(&mut self, now: Moment) {
        self.account.set_rest(Rest::Children);
        self.unknown_until = now.plus(tuning::accounting::UNKNOWN_CHILDREN);
    }

    /// Returns what is to be taken for children's in a state in which `rest` is: in that moment, all that no thread did.
    pub(super) fn rest_at(&self, now: Moment, rest: Rest) -> Rest {
        if now < self.unknown_until { Rest::Children } else { rest }
    }

    /// What is to be charged of all that the process moved, without what is dirty in unlinked files
    /// if the `watcher` charges it.
    pub(super) fn chargeable(
        &mut self,
        id: u32,
        class: &Class,
        now: Moment,
        watcher: bool,
    ) -> Charged {
        let mut charged = Charged::from(self.account.own());
        if watcher {
            let back = self.unlinked.of(id, class, charged.written, now);
            charged.written = charged.written.saturating_sub(back);
        }
        charged
    }

    /// Returns the bytes that were dropped unwritten since the last call.
    pub(super) fn take_cancelled(&mut self) -> u64 {
        let own = self.account.own();
        let cancelled = own.cancelled.saturating_sub(self.cancelled);
        self.cancelled = self.cancelled.max(own.cancelled);
        cancelled
    }

    /// What the account has that the books of a member have not.
    pub(super) fn uncharged(&self, member: &Member) -> Charged {
        let (own, charged) = (self.account.own(), member.books().charged());
        Charged {
            read: own.read.saturating_sub(charged.read),
            written: own.written.saturating_sub(charged.written),
        }
    }

    /// Charges all at the next chance: the process has ended.
    pub(super) fn forget_unlinked(&mut self) {
        self.unlinked.forget();
    }

    /// Notes whether the last look found more than the one before.
    pub(super) fn see_moving(&mut self, now: Moment) {
        let own: Io = self.account.own();
        let moved = own.read.saturating_add(own.written);
        if moved > self.seen.0 {
            self.seen = (moved, now);
        }
    }

    /// Bytes that it had moved in all when that was last seen to grow, and when that was.
    pub(super) fn seen_moving(&self) -> (u64, Moment) {
        self.seen
    }
}
