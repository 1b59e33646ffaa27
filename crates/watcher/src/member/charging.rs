//! What a member moved is charged to its class.

use discnice_ledger::member::Charged;
use discnice_ledger::outside::Reason;
use discnice_ledger::passed::{Count, Decider};
use discnice_ledger::trace::{self, Record, Why};
use discnice_regulator::{ledger, occupy};
use discnice_sys::{futex, time};
use discnice_units::{Bytes, Moment, Nanos};

use super::{Role, Watched};
use crate::accounting::allowed_lead::{Lead, Verdict};
use crate::process;

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
            held.add_escaped(Bytes::new(bytes));
        }
        self.class.watcher().note_charged(self.holding.charged_mechanism(), Bytes::new(bytes));
        self.class.passed().add(Decider::Watcher, Why::Account, Count { calls: 1, bytes });
        let waiting = || process::waiting_threads(id);
        let occupies =
            self.helpers.board.is_some_and(|board| occupy(self.class, board, now, new, waiting));
        let paid_at =
            if cancelled > 0 || occupies { ledger::paid_at(self.class, now, new) } else { paid_at };
        self.schedule.note_debt(now, paid_at);
        if self.class.is_traced() {
            self.record(now, Why::Account, bytes, paid_at.since(now));
        }
        true
    }

    /// Charges what went through its connections, the bytes sent and received; it stands until that is paid for.
    pub(crate) fn charge_traffic(&mut self, now: Moment, moved: [u64; 2]) {
        let paid_at = ledger::charge_traffic(self.class, now, moved);
        let bytes = moved[0].saturating_add(moved[1]);
        self.class.passed().add(Decider::Watcher, Why::Turn, Count { calls: 1, bytes });
        self.has_traffic = true;
        self.schedule.note_traffic_debt(paid_at);
        if self.class.is_traced() {
            self.record(now, Why::Turn, bytes, paid_at.since(now));
        }
    }

    /// When all is paid for that the class owes: for its disks, and for the network if the process owes for that.
    pub(super) fn owed(&self, now: Moment) -> Moment {
        let disk = ledger::paid_at(self.class, now, Charged { read: 1, written: 1 });
        if self.is_without_library() {
            disk.max(ledger::traffic_paid_at(self.class, now, [1, 1]))
        } else {
            disk
        }
    }

    /// Tells a trace what was charged, and for how long the process will stand for it.
    fn record(&self, now: Moment, why: Why, charged: u64, waited: Nanos) {
        self.class.record(&Record {
            at: now,
            process: self.id(),
            thread: self.id(),
            name: trace::name(if why == Why::Turn { b"sockets" } else { b"account" }),
            why,
            charged,
            waited,
            ..Record::default()
        });
    }

    /// What the kernel dropped unwritten need not be paid for. It drops a large file bit by bit, so that the process may stand
    /// for the rest of it already.
    fn take_back(&mut self, now: Moment, cancelled: u64) {
        if cancelled == 0 {
            return;
        }
        if ledger::credit(self.class, now, cancelled) {
            futex::wake_all(self.class.changes());
        }
        self.class.watcher().note_credited(self.holding.charged_mechanism(), Bytes::new(cancelled));
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
    pub(super) fn follow_written(&mut self, now: Moment) {
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
