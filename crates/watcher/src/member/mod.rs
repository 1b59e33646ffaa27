//! One process under watch.

mod charging;
mod looking;
mod role;
mod stopping;
mod uncharged;

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{APART, Held, Mechanism, Reason};
use discnice_ledger::{Class, Member, MemberId};
use discnice_regulator::Backlog;
use discnice_sys::time;
use discnice_units::Nanos;
use role::{Role, rest, role};

use crate::accounting::unlinked_files::Nameless;
use crate::accounting::{Io, OwnAccount, Rest};
use crate::helpers::Helpers;
use crate::holding::{self, Hold};
use crate::process::Pinned;
use crate::read_ahead::ReadAhead;
use crate::schedule::duty::Duty;
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
    role: Role,
    reason: Reason,
    account: OwnAccount,
    cancelled: u64,
    duty: Duty,
    /// Since when it has been ahead of these books.
    suspect: Option<(Nanos, Charged)>,
    caught_until: Nanos,
    hold: Box<dyn Hold>,
    helpers: Helpers,
    read_ahead: ReadAhead,
    nameless: Nameless,
    /// Bytes dirtied since write-back was started last.
    dirtied: u64,
    /// What it has on its way to a disk while its class gives way, and until when it waits for that at the longest.
    backlog: Backlog,
    awaits_until: Nanos,
    held_since: Option<Nanos>,
    press_at: Nanos,
    /// How often it moved bytes though it was held.
    slips: u32,
    letting_go: bool,
    /// Nothing could hold it when it was to be held last.
    is_unheld: bool,
    /// Looks since the last thorough one.
    glances: u32,
    refused_until: Nanos,
    /// When way was made for a debugger last, and for how long lately.
    way_at: Nanos,
    way_used: Nanos,
    /// Until when it stands for the memory that it has.
    rests_until: Nanos,
    /// The user wants it to stand.
    paused: bool,
    /// It does so, and its class says so.
    stands: bool,
    /// The number by which its class lists it.
    number: u32,
    /// Its parent, as far as known.
    pub parent: u32,
    /// Until when children may end that are not found yet; zero for no more.
    unknown_until: Nanos,
    /// How much it had moved when that was seen to grow last, and when that was.
    seen: (u64, Nanos),
    /// When it is to be looked at next.
    pub due: Nanos,
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
        let role = role(class, member.state());
        let Ok(account) = OwnAccount::open(pinned.id(), member.books().charged(), rest(role))
        else {
            held.set_how(Mechanism::None, Reason::Hidden);
            return None;
        };
        let hold = holding::best(pinned.process);
        let now = time::now();
        let cancelled = account.own().cancelled;
        let begun = role == Role::Outside && account.own().written > 0;
        let nameless = if begun { Nameless::begun(pinned.id()) } else { Nameless::default() };
        let watched = Self {
            pinned,
            class,
            slot,
            role,
            reason,
            account,
            cancelled,
            hold,
            helpers,
            read_ahead: ReadAhead::default(),
            nameless,
            dirtied: 0,
            backlog: Backlog::default(),
            awaits_until: Nanos(0),
            duty: Duty::new(now),
            suspect: None,
            caught_until: Nanos(0),
            held_since: None,
            press_at: Nanos(0),
            slips: 0,
            letting_go: false,
            is_unheld: false,
            glances: 0,
            refused_until: Nanos(0),
            way_at: Nanos(0),
            way_used: Nanos(0),
            rests_until: Nanos(0),
            paused: false,
            stands: false,
            number,
            parent: 0,
            due: Nanos(0),
            seen: (0, Nanos(0)),
            unknown_until: Nanos(0),
        };
        Some(watched.greeted(now))
    }

    /// As it is after the first look: told how it is held, and stopped if it reads already.
    fn greeted(mut self, now: Nanos) -> Self {
        self.note_how(self.reason);
        if self.reason == Reason::Attached {
            self.account.set_rest(Rest::Children);
            self.unknown_until = now.plus(tuning::accounting::UNKNOWN_CHILDREN);
        }
        if self.role == Role::Outside && self.read_ahead.expect(self.account.own().read) {
            self.duty.owe(now, now.plus(tuning::read_ahead::FIRST_STOP));
        }
        self
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

    /// Whether its children are ours to find: our library does not bring itself into them.
    #[must_use]
    pub fn bears_outside(&self) -> bool {
        self.role == Role::Outside
    }

    /// When it moved bytes last.
    #[must_use]
    pub fn moved_at(&self) -> Nanos {
        self.duty.moved_at()
    }

    /// What it leaves to its parent's account now that it has ended.
    #[must_use]
    pub fn left(&self) -> Io {
        self.account.left()
    }

    /// Returns true if a reaped child's I/O may already be in this process's account.
    #[must_use]
    pub fn may_be_bereaved(&self) -> bool {
        self.account.may_be_bereaved()
    }

    /// Notes that the process has a child that is watched too.
    pub fn expect_children(&mut self) {
        self.account.expect_children();
    }

    /// A child of it that was watched has ended, and leaves so much to its account.
    pub fn inherit(&mut self, left: Io) {
        self.account.inherit(left);
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
