//! A thread that makes calls, from one call to the next.
//!
//! The supervisor sees a call before it is made and never after. So what a call cost is settled
//! when its thread makes the next one, or ends: that too is told.

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use discnice_ledger::Class;
use discnice_ledger::trace::{self, Record, Why};
use discnice_regulator::decision::{self, Decision, SHORT};
use discnice_regulator::{Access, Due, Thread, Ticket};
use discnice_sys::{cycles, file, time};
use discnice_units::Nanos;

use crate::calls::{Amount, Kind, Request};
use crate::host::{Accounted, Target};
use crate::place;
use crate::proc::{self, Account};
use crate::process::{Descriptor, Holder, Process};
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
    thread: Thread,
    accounted: Accounted,
    previous: Option<Previous>,
    answered: u64,
    /// Bytes of writes that have passed since one was looked at.
    unasked: u64,
    /// The descriptor that was found unable to reach a disk last, and calls on it since.
    other: (i32, u32),
}

impl Caller {
    /// A thread that is seen for the first time, of a process that may not be new.
    pub fn new(process: Arc<Process>, id: u32) -> Self {
        let account = Account::open(process.id, id).ok();
        let accounted = Accounted { account, ..Accounted::default() };
        let is_new = process.is_new;
        let caller = Self {
            process,
            id,
            thread: Thread::default(),
            accounted,
            previous: None,
            answered: cycles::now(),
            unasked: 0,
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
        let (process, accounted) = (&*self.process, &self.accounted);
        let (abandoned, ahead) = (Cell::new(false), Cell::new(0));
        let held = self.thread.outcomes.held();
        Target { process, thread: self.id, accounted, waiting, abandoned, ahead, held }
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
            self.process.regulator(&target, class).look(&self.thread);
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
            Holder::Nobody | Holder::Library => false,
            Holder::Supervisor => !matches!(request.kind, Kind::End | Kind::Exit | Kind::Close),
        };
        if is_regulated {
            return match self.decide_regulated(class, request) {
                Decision::Proceed(why) => Some(why),
                _ => None,
            };
        }
        let passes = match request.kind {
            Kind::End | Kind::Exit => false,
            Kind::Close => holder != Holder::Supervisor || self.process.known(request.fd).is_none(),
            _ => holder == Holder::Library && class.is_calm(),
        };
        passes.then_some(Why::Unexamined)
    }

    /// Decides about a call of a process that is the supervisor's to regulate.
    fn decide_regulated(&self, class: &Class, request: &Request) -> Decision {
        let is_other = self.other.0 == request.fd && self.other.1 < RECHECK;
        let seen = Seen { class, thread: &self.thread, request, is_other, unasked: self.unasked };
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
        if let Kind::Write | Kind::Copy = request.kind {
            self.unasked = self.unasked.saturating_add(count);
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
        if holder == Holder::Nobody {
            self.process.take_over();
            self.begin_here();
        }
        self.settle(class, Some(waiting));
        if holder == Holder::Library {
            // The process has books of its own; the debt of its class concerns all members.
            let target = self.target(Some(waiting));
            self.process.regulator(&target, class).wait_for_debt();
            return;
        }
        if matches!(request.kind, Kind::End | Kind::Exit) {
            self.leave(class, request.kind);
            return;
        }
        if request.kind == Kind::Close {
            self.close(class, request.fd);
            return;
        }
        let decision = self.decide_regulated(class, request);
        self.note(request);
        self.admit_noted(class, request, decision, waiting);
        self.tally();
    }

    /// Admits a call that is noted.
    fn admit_noted(
        &mut self,
        class: &'static Class,
        request: &Request,
        decision: Decision,
        waiting: (i32, u64),
    ) {
        if let Decision::Proceed(why) = decision {
            self.thread.outcomes.because(why);
        }
        let borrowed = match request.kind {
            Kind::Write | Kind::Copy if decision == Decision::Proceed(Why::Unlimited) => return,
            Kind::Read | Kind::Write | Kind::Copy => self.process.borrow(request.fd),
            _ => None,
        };
        if let Kind::Write | Kind::Copy = request.kind {
            self.unasked = 0;
        }
        match (request.kind, borrowed) {
            (Kind::Read, Some(fd)) => self.admit_read(class, request, &fd, waiting),
            (Kind::Write, Some(fd)) => self.admit_write(class, request, &fd, waiting),
            (Kind::Copy, Some(fd)) => self.admit_copy(class, request, &fd, waiting),
            (Kind::Directory, _) => {
                let target = self.target(Some(waiting));
                let regulator = self.process.regulator(&target, class);
                let ticket = regulator.admit_metadata(&self.thread);
                self.remember(ticket, None, None);
            }
            _ => {
                if decision == Decision::Wait {
                    self.thread.outcomes.because(Why::NothingOwed);
                }
                let target = self.target(Some(waiting));
                self.process.regulator(&target, class).wait_for_debt();
                self.remember(Ticket::OPEN, None, None);
            }
        }
    }

    /// Writes back and counts what a file that is about to be closed has left, as no later call
    /// tells of it.
    fn close(&self, class: &'static Class, fd: i32) {
        let Some(descriptor) = self.process.known(fd) else { return };
        descriptor.may_ask();
        if (descriptor.file.dirtied() > 0 || descriptor.file.is_made())
            && let Some(borrowed) = self.process.borrow(fd)
        {
            let target = self.target(None);
            let regulator = self.process.regulator(&target, class);
            regulator.before_close(&self.thread, borrowed.as_raw_fd(), &descriptor.file);
        }
        self.process.forget(fd);
    }

    fn remember(&mut self, ticket: Ticket, descriptor: Option<Arc<Descriptor>>, at: Option<u64>) {
        if let Some(previous) = &mut self.previous {
            previous.ticket = ticket;
            previous.descriptor = descriptor;
            previous.at = at.or(previous.at);
        }
    }

    /// The descriptor's hints, if it can reach a disk.
    fn recognise(
        &mut self,
        fd: i32,
        borrowed: &OwnedFd,
    ) -> Option<(Arc<Descriptor>, file::Status)> {
        let (status, is_local) = place::status(borrowed.as_raw_fd()).ok()?;
        if status.kind == file::Kind::Other {
            self.other = (fd, 0);
            self.thread.outcomes.because(Why::Elsewhere);
            return None;
        }
        let descriptor = self.process.descriptor(fd);
        descriptor.recognise(&status, is_local);
        Some((descriptor, status))
    }

    fn admit_read(
        &mut self,
        class: &'static Class,
        request: &Request,
        fd: &OwnedFd,
        waiting: (i32, u64),
    ) {
        let Some((descriptor, status)) = self.recognise(request.fd, fd) else { return };
        let raw = fd.as_raw_fd();
        let at = request.at.or_else(|| file::position(raw).ok());
        let mut count = self.bytes(request.amount);
        if status.regular {
            count = count.min(status.size.saturating_sub(at.unwrap_or(0)));
        }
        let target = self.target(Some(waiting));
        let regulator = self.process.regulator(&target, class);
        let ticket = regulator.admit_read(&self.thread, raw, &descriptor.file, count as usize, at);
        self.remember(ticket, Some(descriptor), at);
        if let Some(previous) = &mut self.previous {
            previous.count = count;
        }
    }

    fn admit_write(
        &mut self,
        class: &'static Class,
        request: &Request,
        fd: &OwnedFd,
        waiting: (i32, u64),
    ) {
        let Some((descriptor, _)) = self.recognise(request.fd, fd) else { return };
        let count = self.bytes(request.amount);
        let target = self.target(Some(waiting));
        let regulator = self.process.regulator(&target, class);
        let ticket = regulator.admit_write(
            &self.thread,
            fd.as_raw_fd(),
            &descriptor.file,
            request.at,
            count,
        );
        self.remember(ticket, Some(descriptor), request.at);
        if let Some(previous) = &mut self.previous {
            previous.count = count;
        }
    }

    fn admit_copy(
        &mut self,
        class: &'static Class,
        request: &Request,
        from: &OwnedFd,
        waiting: (i32, u64),
    ) {
        let Some(to) = self.process.borrow(request.to) else { return };
        let source = self.recognise(request.fd, from);
        let sink = self.recognise(request.to, &to);
        if source.is_none() && sink.is_none() {
            return;
        }
        let hints = |found: Option<(Arc<Descriptor>, _)>, fd| {
            found.map_or_else(|| self.process.descriptor(fd), |(descriptor, _)| descriptor)
        };
        let (source, sink) = (hints(source, request.fd), hints(sink, request.to));
        let count = self.bytes(request.amount);
        let target = self.target(Some(waiting));
        let ticket = self.process.regulator(&target, class).admit_copy(
            &self.thread,
            (from.as_raw_fd(), &source.file),
            request.in_order,
            (to.as_raw_fd(), &sink.file),
            count,
        );
        self.remember(ticket, Some(sink), None);
    }

    fn bytes(&self, amount: Amount) -> u64 {
        match amount {
            Amount::Bytes(count) => count,
            Amount::Vector(count, address) => {
                proc::vector(self.id, address, count).unwrap_or(SHORT)
            }
        }
    }

    /// Settles the cost of the last call. A thread `waiting` for its next call waits until most of
    /// what the last one dirtied is written back.
    pub fn settle(&mut self, class: &'static Class, waiting: Option<(i32, u64)>) {
        let Some(previous) = self.previous.take() else { return };
        if self.process.holder() == Holder::Library {
            return;
        }
        let target = self.target(waiting);
        let regulator = self.process.regulator(&target, class);
        let (thread, ticket, at) = (&self.thread, previous.ticket, previous.at);
        let moved = previous.count.min(isize::MAX as u64) as isize;
        if let Some(known) = &previous.descriptor {
            known.may_ask();
        }
        match (&previous.descriptor, previous.kind) {
            (Some(known), Kind::Read) => {
                regulator.complete_read(thread, -1, &known.file, ticket, at, moved);
            }
            (Some(known), Kind::Write) => {
                let fd = self.written(previous.fd, previous.count);
                let raw = fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
                regulator.complete_write(thread, raw, &known.file, ticket, at, moved);
            }
            (Some(known), Kind::Copy) => {
                let fd = self.written(previous.to, previous.count);
                let raw = fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
                regulator.complete_copy(thread, (raw, &known.file), ticket, moved);
            }
            _ => regulator.complete_metadata(thread, Access::Looks, ticket),
        }
        if class.is_traced() {
            self.record(class, &previous);
        }
    }

    /// Tells a trace of a call that was settled.
    fn record(&self, class: &Class, call: &Previous) {
        let (outcome, waited) = self.thread.outcomes.take();
        class.record(&Record {
            at: time::now(),
            process: self.process.id,
            thread: self.id,
            name: trace::name(call.kind.name().as_bytes()),
            first: (call.fd >= 0).then_some(call.fd),
            why: outcome.why,
            result: call.count.cast_signed(),
            predicted: outcome.predicted,
            charged: outcome.charged,
            took: Nanos(0),
            waited,
        });
    }

    /// A descriptor by which a call wrote so much, to write that back. One that is kept while the thread waits must
    /// not be able to write: other threads may have closed it, and execute what is in the file.
    fn written(&self, fd: i32, count: u64) -> Option<OwnedFd> {
        let anew = (count > SHORT).then(|| proc::reopen(self.process.id, fd));
        anew.flatten().or_else(|| self.process.borrow(fd))
    }

    /// The thread ends, or all: its account is settled a last time. What a process leaves to
    /// others, as its shell's standard input, gets the kernel's own read-ahead back.
    fn leave(&self, class: &'static Class, kind: Kind) {
        let target = self.target(None);
        let regulator = self.process.regulator(&target, class);
        regulator.look(&self.thread);
        if kind != Kind::Exit {
            return;
        }
        for (fd, descriptor) in self.process.descriptors() {
            if descriptor.file.is_untouched() {
                continue;
            }
            if let Some(borrowed) = self.process.borrow(fd) {
                regulator.unshape(borrowed.as_raw_fd(), &descriptor.file);
            }
        }
    }

    /// The thread was killed: what was reserved for its last call stands as what it cost.
    pub fn bury(&mut self, class: &'static Class) {
        let Some(previous) = self.previous.take() else { return };
        let target = self.target(None);
        let ticket = previous.ticket;
        let regulator = self.process.regulator(&target, class);
        regulator.settle_as(ticket, ticket.read, ticket.write);
        regulator.publish(&self.thread);
    }
}
