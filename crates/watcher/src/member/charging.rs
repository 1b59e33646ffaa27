//! What a member moved is charged to its class.

use discnice_ledger::outside::Reason;
use discnice_ledger::passed::{By, Count};
use discnice_ledger::trace::{self, Record, Why};
use discnice_regulator::{ledger, occupy};
use discnice_sys::{futex, time};
use discnice_units::Nanos;

use super::{Role, Watched};
use crate::accounting::allowed_lead::{Lead, Verdict};

impl Watched {
    /// Charges all that is new; returns whether anything was.
    pub(super) fn charge_own(&mut self) -> bool {
        let Some(member) = self.member() else { return false };
        let (id, now) = (self.id(), time::now());
        let is_outside = self.role == Role::Outside;
        let charged = self.accounting.chargeable(id, self.class, now, is_outside);
        let (new, paid_at) = ledger::charge(self.class, member.books(), now, charged);
        let cancelled = self.accounting.take_cancelled();
        self.take_back(now, cancelled);
        let bytes = new.read + new.written;
        if bytes == 0 {
            return false;
        }
        self.writeback.note(new.written, cancelled);
        self.read_ahead.note(new.read);
        if let Some(held) = self.held() {
            held.add_escaped(bytes);
        }
        self.class.watcher().note_charged(self.holding.charged_mechanism(), bytes);
        self.class.passed().add(By::Watcher, Why::Account, Count { calls: 1, bytes });
        let occupies = self.helpers.board.is_some_and(|board| occupy(self.class, board, now, new));
        let paid_at =
            if cancelled > 0 || occupies { ledger::paid_at(self.class, now, new) } else { paid_at };
        self.schedule.note_debt(now, paid_at);
        if self.class.is_traced() {
            self.record(now, bytes, paid_at.minus(now));
        }
        true
    }

    /// Tells a trace what was charged, and for how long the process will stand for it.
    fn record(&self, now: Nanos, charged: u64, waited: Nanos) {
        self.class.record(&Record {
            at: now,
            process: self.id(),
            thread: self.id(),
            name: trace::name(b"account"),
            why: Why::Account,
            charged,
            waited,
            ..Record::default()
        });
    }

    /// What the kernel dropped unwritten need not be paid for. It drops a large file bit by bit, so that the process may stand
    /// for the rest of it already.
    fn take_back(&mut self, now: Nanos, cancelled: u64) {
        if cancelled == 0 {
            return;
        }
        if ledger::credit(self.class, now, cancelled) {
            futex::wake_all(self.class.changes());
        }
        self.class.watcher().note_credited(self.holding.charged_mechanism(), cancelled);
        self.shorten_debt();
    }

    /// Has what it dirtied written back, by now while it stands with its files open. Where its class gives way it stands until
    /// little of that is on its way, too.
    pub(super) fn write_back(&mut self) {
        let (id, now) = (self.id(), time::now());
        if let Some(until) = self.writeback.start(now, id, self.class, &self.helpers.write_back) {
            self.schedule.note_debt(now, until);
        }
    }

    /// Goes on once little of what it dirtied is on its way to the disk.
    pub(super) fn follow_written(&mut self, now: Nanos) {
        if self.writeback.end_wait(now, self.id(), &self.helpers.write_back) {
            self.shorten_debt();
        }
    }

    /// Charges what a preloaded process did without any call that its library could have noticed.
    pub(super) fn charge_if_ahead(&mut self) -> bool {
        let Some(member) = self.member() else { return false };
        let charged = member.books().charged();
        self.accounting.account.raise(charged);
        let uncharged = self.accounting.uncharged(member);
        let bytes = uncharged.read + uncharged.written;
        let (id, now) = (self.id(), time::now());
        let is_strict = self.class.watcher().is_strict();
        let allowed = || Lead::of(id, bytes, is_strict);
        let is_stopped = self.holding.is_stopped();
        match self.accounting.ahead.judge(now, charged, bytes, is_stopped, allowed) {
            Verdict::Allowed => return false,
            Verdict::RanAhead => {
                self.reason = Reason::RanAhead;
                self.note_how(Reason::RanAhead);
            }
            Verdict::StillCharged => {}
        }
        let moved = self.charge_own();
        self.accounting.ahead.note_charged(now, member.books().charged());
        moved
    }
}
