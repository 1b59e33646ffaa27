//! What a member moved is charged to its class.

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{Mechanism, Reason};
use discnice_ledger::trace::{self, Record, Why};
use discnice_regulator::{ledger, left_of, occupy, write_back_portion};
use discnice_sys::{futex, time};
use discnice_units::Nanos;

use super::{Role, Watched};
use crate::accounting::allowed_lead::Lead;
use crate::tuning;
use crate::writeback::portions::Pace;

impl Watched {
    /// Charges all that is new; returns whether anything was.
    pub(super) fn charge_own(&mut self) -> bool {
        let Some(member) = self.member() else { return false };
        let own = self.account.own();
        let now = time::now();
        let mut charged = Charged::from(own);
        if self.role == Role::Outside {
            let back = self.nameless.of(self.id(), self.class, charged.written, now);
            charged.written = charged.written.saturating_sub(back);
        }
        let (new, paid_at) = ledger::charge(self.class, member.books(), now, charged);
        let cancelled = own.cancelled.saturating_sub(self.cancelled);
        self.cancelled = self.cancelled.max(own.cancelled);
        self.take_back(now, cancelled);
        let bytes = new.read + new.written;
        if bytes == 0 {
            return false;
        }
        self.dirtied = (self.dirtied + new.written).saturating_sub(cancelled);
        self.read_ahead.note(new.read);
        if let Some(held) = self.held() {
            held.add_escaped(bytes);
        }
        self.class.watcher().note_charged(self.charged_mechanism(), bytes);
        let occupies = self.helpers.board.is_some_and(|board| occupy(self.class, board, now, new));
        let paid_at =
            if cancelled > 0 || occupies { ledger::paid_at(self.class, now, new) } else { paid_at };
        self.duty.owe(now, paid_at);
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

    fn charged_mechanism(&self) -> Mechanism {
        if self.is_unheld { Mechanism::None } else { self.hold.mechanism() }
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
        self.class.watcher().note_credited(self.charged_mechanism(), cancelled);
        self.relent();
    }

    /// Has what it dirtied written back, by now while it stands with its files open. Where its class gives way it stands until
    /// little of that is on its way, too.
    pub(super) fn write_back(&mut self) {
        let counts = self.class.is_limited() || self.class.yields();
        if !counts || self.dirtied < write_back_portion(self.class) {
            return;
        }
        let (id, pace, bytes) =
            (self.id(), Pace::of(self.class), std::mem::take(&mut self.dirtied));
        let now = time::now();
        let write_back = &self.helpers.write_back;
        let is_let_go = self.class.yields() && pace.is_free();
        if !(is_let_go && self.backlog.add(now, bytes)) {
            write_back.of(id, pace);
        } else if write_back.await_written(id, pace, left_of(bytes)) {
            self.awaits_until = now.plus(tuning::writeback::IN_FLIGHT_LONGEST);
            self.duty.owe(now, self.awaits_until);
        }
    }

    /// Goes on once little of what it dirtied is on its way to the disk.
    pub(super) fn follow_written(&mut self, now: Nanos) {
        let waits = self.awaits_until > Nanos(0);
        if waits && (now >= self.awaits_until || self.helpers.write_back.is_written(self.id())) {
            self.awaits_until = Nanos(0);
            self.backlog.clear(now);
            self.relent();
        }
    }

    /// Charges what a preloaded process did without any call that its library could have noticed.
    pub(super) fn charge_if_ahead(&mut self) -> bool {
        let Some(member) = self.member() else { return false };
        let charged = member.books().charged();
        self.account.raise(charged);
        let own = self.account.own();
        let ahead =
            own.read.saturating_sub(charged.read) + own.written.saturating_sub(charged.written);
        let now = time::now();
        let still = self.suspect.filter(|(_, books)| *books == charged);
        if now < self.caught_until && self.held_since.is_some() {
            // It stands: that it is not ahead says nothing.
            self.caught_until = now.plus(tuning::accounting::AHEAD_AGAIN);
        } else if now < self.caught_until && still.is_none() {
            // It charges itself again, and waits for that itself.
            self.caught_until = Nanos(0);
        }
        if now >= self.caught_until {
            if ahead < Lead::LEAST {
                self.suspect = None;
                return false;
            }
            let lead = Lead::of(self.id(), ahead, self.class.watcher().is_strict());
            match still {
                _ if ahead >= lead.most => {}
                Some((since, _)) if ahead >= lead.bytes && now >= since.plus(lead.time) => {}
                Some(_) => return false,
                None => {
                    self.suspect = Some((now, charged));
                    return false;
                }
            }
            self.reason = Reason::RanAhead;
            self.note_how(Reason::RanAhead);
        }
        if ahead > 0 {
            self.caught_until = now.plus(tuning::accounting::AHEAD_AGAIN);
        }
        let moved = self.charge_own();
        self.suspect = Some((now, member.books().charged()));
        moved
    }
}
