//! One process under watch.

mod accounting;
mod charging;
mod holding;
mod looking;
mod role;
mod stopping;
mod uncharged;
mod writeback;

use accounting::Accounting;
use holding::Holding;
use role::{Role, rest_in, role};
use writeback::Writeback;

use discnice_ledger::outside::{APART, Held, Reason};
use discnice_ledger::{Class, Member, MemberId};
use discnice_sys::time;
use discnice_units::Moment;

use crate::accounting::unlinked_files::UnlinkedFiles;
use crate::accounting::{Io, OwnAccount};
use crate::helpers::Helpers;
use crate::process::Pinned;
use crate::read_ahead::ReadAhead;
use crate::schedule::stops::Schedule;
use crate::tuning;

/// Why a process is no longer watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It ended.
    Ended,
    /// It was detached, or its class removed.
    Detached,
}

/// A process under watch.
#[derive(Debug)]
pub struct Watched {
    pinned: Pinned,
    class: &'static Class,
    slot: MemberId,
    /// The number by which its class lists it.
    number: u32,
    role: Role,
    reason: Reason,
    accounting: Accounting,
    holding: Holding,
    writeback: Writeback,
    read_ahead: ReadAhead,
    schedule: Schedule,
    /// Set if bytes of it have gone through connections since the last look.
    has_traffic: bool,
    helpers: Helpers,
    /// Its parent, as far as known.
    pub parent: u32,
}

impl Watched {
    /// Begins to watch the process in `slot`, where it goes by this number. `None` when it has gone, or its account is hidden.
    #[must_use]
    pub fn new(
        pinned: Pinned,
        class: &'static Class,
        (slot, number): (MemberId, u32),
        reason: Reason,
        helpers: Helpers,
    ) -> Option<Self> {
        let member = class.member(slot, number)?;
        let held = class.held(slot)?;
        held.begin(member, mark(&pinned, number));
        let before = held.of(member).map(|account| account.reason);
        // That is told anew while it lasts.
        let before = before.filter(|reason| *reason != Reason::Paused).unwrap_or(Reason::None);
        let reason = if reason == Reason::None { before } else { reason };
        // One that confines itself now may have moved all that it will, and have ended, when its account is read.
        let by_now = || rest_in(class, member.state());
        let Ok(account) = OwnAccount::open(pinned.id(), member.books().charged(), by_now) else {
            held.set_how(None, Reason::Hidden);
            return None;
        };
        let role = role(class, member.state());
        let unlinked = match account.own().written {
            written if role == Role::Outside && written > 0 => {
                UnlinkedFiles::begun(pinned.id(), written)
            }
            _ => UnlinkedFiles::default(),
        };
        let now = time::now();
        let watched = Self {
            class,
            slot,
            number,
            role,
            reason,
            accounting: Accounting::new(account, unlinked),
            holding: Holding::new(pinned.process),
            writeback: Writeback::default(),
            read_ahead: ReadAhead::default(),
            schedule: Schedule::new(now),
            has_traffic: false,
            helpers,
            parent: 0,
            pinned,
        };
        Some(watched.greeted(now))
    }

    /// As it is after the first look: told how it is held, and stopped if it reads already.
    fn greeted(mut self, now: Moment) -> Self {
        self.note_how(self.reason);
        if self.reason == Reason::Attached {
            self.accounting.expect_unknown_children(now);
        }
        if self.role == Role::Outside && self.read_ahead.expect(self.accounting.account.own().read)
        {
            self.schedule.note_debt(now, now.plus(tuning::read_ahead::FIRST_STOP));
        }
        self
    }

    /// When it is to be looked at next.
    #[must_use]
    pub fn due(&self) -> Moment {
        self.schedule.due
    }

    /// Has it looked at next at this time.
    pub fn set_due(&mut self, due: Moment) {
        self.schedule.due = due;
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pinned.id()
    }

    /// One of its descriptors, for a moment.
    pub(crate) fn borrow(&self, descriptor: i32) -> Option<std::os::fd::OwnedFd> {
        self.pinned.borrow(descriptor)
    }

    /// The number by which its class lists it: in a PID namespace of its own that is not its id.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// When it was born, in clock ticks since boot, and its id: in the order of births.
    #[must_use]
    pub fn birth(&self) -> (u64, u32) {
        (self.pinned.process.started, self.id())
    }

    /// Returns true if it was born so lately that all its connections began under watch.
    #[must_use]
    pub(crate) fn is_young(&self) -> bool {
        self.pinned.age() < tuning::network::YOUNG
    }

    /// Whether its children are ours to find: our library does not bring itself into them.
    #[must_use]
    pub fn bears_outside(&self) -> bool {
        self.role == Role::Outside
    }

    /// Returns true while it starts a program that our library does not bring itself into.
    #[must_use]
    pub fn is_bearing(&self) -> bool {
        self.member().is_some_and(Member::is_bearing)
    }

    /// When it moved bytes last.
    #[must_use]
    pub fn moved_at(&self) -> Moment {
        self.schedule.moved_at()
    }

    /// What it leaves to its parent's account now that it has ended.
    #[must_use]
    pub fn left(&self) -> Io {
        self.accounting.account.left()
    }

    /// Returns true if a reaped child's I/O may already be in this process's account.
    #[must_use]
    pub fn may_be_bereaved(&self) -> bool {
        self.accounting.account.may_be_bereaved()
    }

    /// Notes that the process has a child that is watched too.
    pub fn expect_children(&mut self) {
        self.accounting.account.expect_children();
    }

    /// A child of it that was watched has ended, and leaves so much to its account.
    pub fn inherit(&mut self, left: Io) {
        self.accounting.account.inherit(left);
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pinned.has_ended()
    }

    /// Frees the slot of a process that has ended, unless another life of the slot has begun. The
    /// slot is kept if the account only could not be read for a moment (the process changes its
    /// user).
    pub fn free_slot(&self) {
        if let Some(member) = self.member()
            && self.pinned.has_ended()
        {
            member.release();
        }
    }

    fn member(&self) -> Option<&'static Member> {
        self.class.member(self.slot, self.number)
    }

    fn held(&self) -> Option<&'static Held> {
        self.class.held(self.slot)
    }
}

/// When a process started that its class lists by this number, as it is noted there.
fn mark(pinned: &Pinned, number: u32) -> u64 {
    let apart = if number == pinned.id() { 0 } else { APART };
    pinned.process.started | apart
}

#[cfg(test)]
mod tests;
