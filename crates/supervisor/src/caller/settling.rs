//! Settling what the last call cost, when its thread makes the next one or ends.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use discnice_ledger::Class;
use discnice_ledger::trace::{self, Record};
use discnice_regulator::Access;
use discnice_regulator::decision::SHORT;
use discnice_sys::time;
use discnice_units::Nanos;

use super::{Caller, Previous};
use crate::calls::Kind;
use crate::closed;
use crate::descriptor::Descriptor;
use crate::proc;
use crate::process::Holder;

impl Caller {
    /// Settles the cost of the last call. A thread `waiting` for its next call waits until most of
    /// what the last one dirtied is written back.
    pub fn settle(&mut self, class: &'static Class, waiting: Option<(i32, u64)>) {
        let Some(previous) = self.previous.take() else { return };
        if self.process.holder() == Holder::Library {
            return;
        }
        let target = self.target(waiting);
        let regulator = target.regulator(class);
        let (thread, ticket, at) = (&self.thread, previous.ticket, previous.at);
        let moved = previous.count.min(isize::MAX as u64) as isize;
        if let Some(known) = &previous.descriptor {
            known.may_ask();
        }
        match (&previous.descriptor, previous.kind) {
            (Some(known), Kind::Read) => {
                let end = at.map(|at| at.saturating_add(previous.count));
                let fd = self.dropped_behind(known, previous.fd, end);
                let raw = fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
                regulator.complete_read(thread, raw, &known.file, ticket, at, moved);
            }
            (Some(known), Kind::Write) => {
                let fd = self.written(known, previous.fd, previous.count);
                let raw = fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
                regulator.complete_write(thread, raw, &known.file, ticket, at, moved);
            }
            (Some(known), Kind::Copy) => {
                let fd = self.written(known, previous.to, previous.count);
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

    /// A descriptor of what a call wrote so much to, to write that back. One that is kept while the thread waits must
    /// not be able to write: other threads may have closed it, and execute what is in the file.
    fn written(&self, known: &Descriptor, fd: i32, count: u64) -> Option<OwnedFd> {
        let anew = (count > SHORT).then(|| proc::reopen(self.process.id, fd));
        let open = anew.flatten().or_else(|| self.process.borrow(fd));
        open.filter(|open| known.is_behind(open)).or_else(|| known.reopen(self.process.id))
    }

    /// A descriptor of a file of which something is to leave the page cache, once a read has ended there.
    fn dropped_behind(&self, known: &Descriptor, fd: i32, end: Option<u64>) -> Option<OwnedFd> {
        let leaves = known.file.leaves_behind(end.unwrap_or(u64::MAX));
        let open = leaves.then(|| self.process.borrow(fd));
        open.flatten().filter(|open| known.is_behind(open))
    }

    /// Leaves a file that was closed to the thread that finishes those.
    pub(super) fn leave_closed(&self, class: &'static Class, descriptor: Arc<Descriptor>) {
        let target = self.target(None);
        let closed_by = (&target.regulator(class), &self.thread);
        if let Some(work) = closed::left(class, &self.process, closed_by, descriptor) {
            self.finisher.finish(work);
        }
    }

    /// The thread ends, or all: its account is settled a last time. What a process leaves to
    /// others, as its shell's standard input, gets the kernel's own read-ahead back.
    pub(super) fn leave(&self, class: &'static Class, kind: Kind) {
        let target = self.target(None);
        let regulator = target.regulator(class);
        regulator.look(&self.thread);
        if kind != Kind::Exit {
            return;
        }
        for (fd, descriptor) in self.process.descriptors() {
            if descriptor.file.is_untouched() {
                continue;
            }
            let borrowed = self.process.borrow(fd);
            if let Some(borrowed) = borrowed.filter(|open| descriptor.is_behind(open)) {
                regulator.unshape(borrowed.as_raw_fd(), &descriptor.file);
            }
        }
        for closed in self.process.take_closed(true) {
            self.leave_closed(class, closed);
        }
    }

    /// The thread was killed: what was reserved for its last call stands as what it cost.
    pub fn bury(&mut self, class: &'static Class) {
        let Some(previous) = self.previous.take() else { return };
        let target = self.target(None);
        let ticket = previous.ticket;
        let regulator = target.regulator(class);
        regulator.settle_as(ticket, ticket.read, ticket.write);
        regulator.publish(&self.thread);
    }
}
