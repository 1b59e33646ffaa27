//! Admitting a call: its descriptor is borrowed, and what it will cost reserved, which may take long.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use discnice_ledger::Class;
use discnice_ledger::trace::Why;
use discnice_regulator::decision::{Decision, SHORT};
use discnice_regulator::{Host, Ticket};
use discnice_sys::file;

use super::Caller;
use crate::calls::{Amount, Kind, Request};
use crate::descriptor::Descriptor;
use crate::proc;

impl Caller {
    /// Admits a call that is noted.
    pub(super) fn admit_noted(
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
        match request.kind {
            Kind::Write | Kind::Copy => self.unasked = 0,
            Kind::Read => self.unasked_reads = 0,
            _ => {}
        }
        match (request.kind, borrowed) {
            (Kind::Read, Some(fd)) => self.admit_read(class, request, &fd, waiting),
            (Kind::Write, Some(fd)) => self.admit_write(class, request, &fd, waiting),
            (Kind::Copy, Some(fd)) => self.admit_copy(class, request, &fd, waiting),
            (Kind::Directory, _) => {
                let target = self.target(Some(waiting));
                let regulator = target.regulator(class);
                let ticket = regulator.admit_metadata(&self.thread);
                self.remember(ticket, None, None);
            }
            _ => {
                if decision == Decision::Wait {
                    self.thread.outcomes.because(Why::NothingOwed);
                }
                let target = self.target(Some(waiting));
                target.regulator(class).wait_for_debt();
                self.remember(Ticket::OPEN, None, None);
            }
        }
    }

    fn remember(&mut self, ticket: Ticket, descriptor: Option<Arc<Descriptor>>, at: Option<u64>) {
        if let Some(previous) = &mut self.previous {
            previous.ticket = ticket;
            previous.descriptor = descriptor;
            previous.at = at.or(previous.at);
        }
    }

    /// The descriptor's hints, if it can reach a disk. What it meant before was closed if it means another file now.
    fn recognise(
        &mut self,
        class: &'static Class,
        fd: i32,
        borrowed: &OwnedFd,
    ) -> Option<(Arc<Descriptor>, file::Status)> {
        let (status, is_local) = self.places.status(borrowed.as_raw_fd()).ok()?;
        if status.kind == file::FileKind::Other {
            self.other = (fd, 0);
            self.thread.outcomes.because(Why::Elsewhere);
            return None;
        }
        let (descriptor, before) = self.process.recognise(fd, &status, is_local);
        if let Some(before) = before {
            self.leave_closed(class, before);
        }
        Some((descriptor, status))
    }

    fn admit_read(
        &mut self,
        class: &'static Class,
        request: &Request,
        fd: &OwnedFd,
        waiting: (i32, u64),
    ) {
        let Some((descriptor, status)) = self.recognise(class, request.fd, fd) else { return };
        let raw = fd.as_raw_fd();
        let at = request.at.or_else(|| file::position(raw).ok());
        if at == Some(0) {
            // It may have been opened anew under the number that it had before.
            descriptor.file.expect_unshaped();
        }
        self.protect_cache(class, request.fd, raw, &descriptor);
        let mut count = self.bytes(request.amount);
        if status.regular {
            count = count.min(status.size.saturating_sub(at.unwrap_or(0)));
        }
        let target = self.target(Some(waiting));
        let regulator = target.regulator(class);
        let ticket = regulator.admit_read(&self.thread, raw, &descriptor.file, count as usize, at);
        self.remember(ticket, Some(descriptor), at);
        if let Some(previous) = &mut self.previous {
            previous.count = count;
        }
    }

    /// Looks whether what is about to be read of a file for the first time is to leave the page cache.
    fn protect_cache(&self, class: &'static Class, fd: i32, raw: i32, descriptor: &Descriptor) {
        if !class.protects_cache() || descriptor.is_placed() {
            return;
        }
        self.process.note_path(fd, descriptor);
        let target = self.target(None);
        if descriptor.path().is_some() && !target.can_write(raw) {
            target.regulator(class).opened_to_read(raw, &descriptor.file);
        }
    }

    fn admit_write(
        &mut self,
        class: &'static Class,
        request: &Request,
        fd: &OwnedFd,
        waiting: (i32, u64),
    ) {
        let Some((descriptor, _)) = self.recognise(class, request.fd, fd) else { return };
        self.process.note_path(request.fd, &descriptor);
        let count = self.bytes(request.amount);
        let target = self.target(Some(waiting));
        let regulator = target.regulator(class);
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
        let source = self.recognise(class, request.fd, from);
        if let Some((source, _)) = &source {
            self.protect_cache(class, request.fd, from.as_raw_fd(), source);
        }
        let sink = self.recognise(class, request.to, &to);
        if source.is_none() && sink.is_none() {
            return;
        }
        let hints = |found: Option<(Arc<Descriptor>, _)>, fd| {
            found.map_or_else(|| self.process.descriptor(fd), |(descriptor, _)| descriptor)
        };
        let (source, sink) = (hints(source, request.fd), hints(sink, request.to));
        self.process.note_path(request.to, &sink);
        let count = self.bytes(request.amount);
        let target = self.target(Some(waiting));
        let ticket = target.regulator(class).admit_copy(
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
}
