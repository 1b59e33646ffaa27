//! A thread that makes calls, from one call to the next.
//!
//! The supervisor sees a call before it is made and never after. So what a call cost is settled
//! when its thread makes the next one, or ends: that too is told.

mod admitting;
mod settling;

use std::sync::Arc;

use discnice_ledger::Class;
use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Decision, SHORT};
use discnice_regulator::{Due, Thread, Ticket};
use discnice_sys::cycles;

use crate::calls::{Amount, Kind, Request};
use crate::closed::Finisher;
use crate::descriptor::Descriptor;
use crate::host::{Accounted, Target};
use crate::place::Places;
use crate::proc::Account;
use crate::process::{Holder, Process};
use crate::seen::Seen;

/// A descriptor that cannot reach a disk is looked at again after so many calls: its number may
/// mean another file since.
const RECHECK: u32 = 16;
/// What a call left to be settled.
#[derive(Debug)]
struct Previous {
    kind: Kind,
    fd: i32,
    to: i32,
    ticket: Ticket,
    descriptor: Option<Arc<Descriptor>>,
    at: Option<u64>,
    /// What it asked for, which is what it moved as far as known.
    count: u64,
}

impl Previous {
    /// Returns true if the next call waits until this one is settled.
    fn matters(&self, class: &Class) -> bool {
        let wrote = matches!(self.kind, Kind::Write | Kind::Copy) && self.descriptor.is_some();
        self.ticket != Ticket::FREE || wrote && class.yields()
    }
}

/// A thread.
#[derive(Debug)]
pub struct Caller {
    /// Its process.
    pub process: Arc<Process>,
    /// Its id.
    pub id: u32,
    finisher: &'static Finisher,
    places: &'static Places,
    thread: Thread,
    accounted: Accounted,
    previous: Option<Previous>,
    answered: u64,
    /// Bytes of writes that have passed since one was looked at.
    unasked: u64,
    /// Bytes of reads that have passed since one was looked at.
    unasked_reads: u64,
    /// The descriptor that was found unable to reach a disk last, and calls on it since.
    other: (i32, u32),
}

impl Caller {
    /// A thread that is seen for the first time, of a process that may not be new.
    pub fn new(
        process: Arc<Process>,
        id: u32,
        finisher: &'static Finisher,
        places: &'static Places,
    ) -> Self {
        let account = Account::open(process.id, id).ok();
        let accounted = Accounted { account, ..Accounted::default() };
        let is_new = process.is_new;
        let caller = Self {
            process,
            id,
            finisher,
            places,
            thread: Thread::default(),
            accounted,
            previous: None,
            answered: cycles::now(),
            unasked: 0,
            unasked_reads: 0,
            other: (-1, 0),
        };
        if !is_new {
            caller.begin_here();
        }
        caller
    }

    /// What the thread did before is charged already, or was before we came.
    fn begin_here(&self) {
        if let Some(account) = &self.accounted.account
            && let Ok(look) = account.look()
        {
            self.accounted.last.set(look);
        }
    }

    /// Returns true if the thread has ended, so that its number may be another's.
    pub fn is_gone(&self) -> bool {
        self.accounted.account.as_ref().is_some_and(|account| account.look().is_err())
    }

    fn target(&self, waiting: Option<(i32, u64)>) -> Target<'_> {
        let held = self.thread.outcomes.held();
        Target { waiting, ..Target::new(&self.process, self.id, &self.accounted, held) }
    }

    /// Lets the call go on at once if it can, as far as that is known without examining its
    /// descriptor; tells whether it does. The cost of the last call is looked at if it may have cost
    /// anything.
    pub fn let_pass(&mut self, class: &'static Class, request: &Request) -> bool {
        let holder = self.process.holder();
        let why = self.decide(class, request, holder);
        if let Kind::Read | Kind::Write = request.kind {
            self.other.1 = self.other.1.saturating_add(1);
        }
        let Some(why) = why else { return false };
        let matters = self.previous.as_ref().is_some_and(|previous| previous.matters(class));
        if matters || class.is_traced() {
            return false;
        }
        if holder == Holder::Supervisor && self.count(class).is_some() {
            let target = self.target(None);
            target.regulator(class).look(&self.thread);
            if self.thread.cache.missed() && class.is_limited() {
                return false;
            }
        }
        self.note(request);
        self.thread.outcomes.because(why);
        self.tally();
        true
    }

    /// Counts the call that is noted by the reason for which it goes on.
    fn tally(&self) {
        let why = self.thread.outcomes.why();
        if let Some(call) = self.previous.as_ref().filter(|_| why != Why::Unexamined) {
            self.thread.tally.count(why, call.count);
        }
    }

    /// Tells why a call goes on at once; `None` if it must be examined.
    fn decide(&self, class: &Class, request: &Request, holder: Holder) -> Option<Why> {
        let is_regulated = match holder {
            Holder::None | Holder::Library => false,
            Holder::Supervisor => !matches!(request.kind, Kind::End | Kind::Exit),
        };
        if is_regulated {
            return match self.decide_regulated(class, request) {
                Decision::Proceed(why) => Some(why),
                _ => None,
            };
        }
        let passes = match request.kind {
            Kind::End | Kind::Exit => false,
            _ => holder == Holder::Library && class.is_calm(),
        };
        passes.then_some(Why::Unexamined)
    }

    /// Decides about a call of a process that is the supervisor's to regulate.
    fn decide_regulated(&self, class: &Class, request: &Request) -> Decision {
        let is_other = self.other.0 == request.fd && self.other.1 < RECHECK;
        let (unasked, unasked_reads) = (self.unasked, self.unasked_reads);
        let thread = &self.thread;
        let seen = Seen { class, thread, request, is_other, unasked, unasked_reads };
        match request.kind {
            Kind::Read => decision::read(&seen),
            Kind::Write | Kind::Copy => decision::write(&seen),
            Kind::Directory => decision::metadata(&seen),
            _ => decision::start(&seen),
        }
    }

    /// Counts the call before this one; returns why the account must be looked at for it.
    fn count(&mut self, class: &Class) -> Option<Due> {
        let Some(previous) = self.previous.take() else {
            return self.thread.cache.missed().then_some(Due::Calls);
        };
        let count = previous.count.min(1 << 30) as isize;
        let elapsed = cycles::now().wrapping_sub(self.answered);
        let countdown = &self.thread.countdown;
        match previous.kind {
            _ if !class.is_limited() => countdown.count_unlimited(previous.count as usize),
            Kind::Write => self.thread.writes.count(count).or_else(|| countdown.count(0, 0)),
            _ => countdown.count(elapsed, count),
        }
    }

    fn note(&mut self, request: &Request) {
        let count = match request.amount {
            Amount::Bytes(count) => count,
            Amount::Vector(..) => SHORT,
        };
        let unasked = match request.kind {
            Kind::Write | Kind::Copy => Some(&mut self.unasked),
            Kind::Read => Some(&mut self.unasked_reads),
            _ => None,
        };
        if let Some(unasked) = unasked {
            *unasked = unasked.saturating_add(count);
        }
        // What became of the call before is settled, or was not worth a record.
        let _ = self.thread.outcomes.take();
        self.previous = Some(Previous {
            kind: request.kind,
            fd: request.fd,
            to: request.to,
            ticket: Ticket::FREE,
            descriptor: None,
            at: request.at,
            count,
        });
    }

    /// The call is about to be answered.
    pub fn is_answered(&mut self) {
        self.answered = cycles::now();
    }

    /// Settles the last call and admits this one, which may take long.
    pub fn admit(&mut self, class: &'static Class, request: &Request, waiting: (i32, u64)) {
        let holder = self.process.holder();
        if holder == Holder::None {
            self.process.take_over();
            self.begin_here();
        }
        self.settle(class, Some(waiting));
        if holder == Holder::Library {
            // The process has books of its own; the debt of its class concerns all members.
            let target = self.target(Some(waiting));
            target.regulator(class).wait_for_debt();
            return;
        }
        if matches!(request.kind, Kind::End | Kind::Exit) {
            self.leave(class, request.kind);
            return;
        }
        let decision = self.decide_regulated(class, request);
        self.note(request);
        self.admit_noted(class, request, decision, waiting);
        self.tally();
    }
}
