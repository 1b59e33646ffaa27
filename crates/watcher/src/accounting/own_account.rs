//! A process's own I/O, from outside.
//!
//! `/proc/PID/io` is exact for the process with all its threads, living and dead, and its io_uring
//! workers. But the kernel adds to it the account of every child that the process waits for, and
//! that has been charged already. What the threads did tells the two apart.

use std::collections::HashMap;
use std::io;

use discnice_ledger::member::Charged;
use discnice_sys::{procfs, time};
use discnice_units::Nanos;

use super::proc_io::{Io, Source, sum, threads};

/// What of a process's new bytes none of its threads did: children, or threads that ended. The process may have gone
/// on before its threads were asked; those bytes come again with its next account.
fn beyond(new: Io, by_threads: Io, early: &mut Io) -> Io {
    let known = early.plus(by_threads);
    *early = known.minus(new);
    new.minus(known)
}

/// Whether the process has waited for a child: only then the kernel has added anything to it. A
/// child that was waited for leaves its page faults with its parent; none ever ran without one.
fn has_reaped(id: u32) -> bool {
    procfs::stat(id).is_none_or(|stat| stat.children_faults > 0)
}

/// A process's own account.
#[derive(Debug)]
pub struct OwnAccount {
    id: u32,
    source: Source,
    /// Tells if the process executes a program.
    memory: Source,
    /// The process's account at the last look, with its children's.
    seen: Io,
    /// The part that is its own.
    own: Io,
    /// Processor time that the process had had at some moment before that look.
    ran: Option<Nanos>,
    /// What its threads had done at the last look; `None` while it never had a child.
    threads: Option<HashMap<u32, Io>>,
    /// What threads were seen to have done that the process's account, which is read before theirs, did not have yet.
    early: Io,
    /// What of children's accounts, charged to them, is still to arrive in the process's.
    coming: Io,
    /// What no living thread did, nor any child that is known to have ended; the process's own unless such a child is
    /// told of before the next look.
    unclaimed: Io,
    rest: Rest,
}

/// Owner of the I/O that no living thread of a process did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// That of children, as far as they are known to have been charged; else the process's.
    Known,
    /// Always others': the children charge themselves, and we are not told.
    Children,
}

impl OwnAccount {
    /// Opens the account of process `id`, of which at least `charged` is its own. `by_now` is asked as in [`Self::look`].
    ///
    /// # Errors
    /// It is gone, or hides its account.
    pub fn open(id: u32, charged: Charged, by_now: impl FnOnce() -> Rest) -> io::Result<Self> {
        let source = Source::open(format!("/proc/{id}/io"))?;
        let seen = source.account()?;
        let rest = by_now();
        let memory = Source::open_if_plenty(format!("/proc/{id}/statm"));
        let threads = (rest == Rest::Children || has_reaped(id)).then(|| threads(id));
        let own = threads.as_ref().map_or(seen, |threads| sum(threads.values()));
        let [early, coming, unclaimed] = [Io::default(); 3];
        let ran = None;
        let mut account =
            Self { id, source, memory, seen, own, ran, threads, early, coming, unclaimed, rest };
        account.raise(charged);
        Ok(account)
    }

    /// Reads the process's own I/O once. A process that charged itself all that the kernel
    /// accounts, with its children's, need not be looked at thread by thread.
    ///
    /// # Errors
    /// As [`OwnAccount::open`].
    pub fn once(id: u32, charged: Charged, rest: Rest) -> io::Result<Io> {
        let io = procfs::io(id).ok_or(io::ErrorKind::NotFound)?;
        let [read, written] = io.bytes;
        if read <= charged.read && written <= charged.written {
            return Ok(Io { read: charged.read, written: charged.written, cancelled: 0 });
        }
        Self::open(id, charged, || rest).map(|account| account.own())
    }

    /// At least so much is the process's own: it said so itself.
    pub fn raise(&mut self, charged: Charged) {
        self.own = self.own.max(Io { read: charged.read, written: charged.written, cancelled: 0 });
    }

    /// From now on, what no living thread did is treated like this.
    pub fn set_rest(&mut self, rest: Rest) {
        self.rest = rest;
        if rest == Rest::Children {
            self.expect_children();
        }
    }

    /// What the process did by itself since it was born, as far as known.
    #[must_use]
    pub fn own(&self) -> Io {
        self.own
    }

    /// Whether the process did nothing since the last look, as none of its threads ran: five times as cheap as
    /// a look. Of one that runs for the first time, that may show up to a tick of the kernel later. Unless it did
    /// nothing, a look has to follow.
    #[must_use]
    pub fn has_slept(&mut self) -> bool {
        let ran = time::of_process(self.id);
        let before = std::mem::replace(&mut self.ran, ran);
        ran.is_some() && ran == before
    }

    /// Processor time that the process had had when [`Self::own`] was right, if that is known.
    #[must_use]
    pub fn ran(&self) -> Option<Nanos> {
        self.ran
    }

    /// Returns true if the process executes a program: to look again may wait as long as it closes files.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        let mut text = [0; 256];
        self.memory.read(&mut text).is_ok_and(procfs::has_only_stack)
    }

    /// Whether the kernel's account is the one that was seen last; cheaper than to look again.
    ///
    /// # Errors
    /// `ESRCH` when the process is gone.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(self.source.account()? == self.seen)
    }

    /// Looks again; what no child has claimed since the last look is the process's own. `by_now` is asked after the account
    /// was read, as what changes that may happen at any moment before.
    ///
    /// # Errors
    /// `ESRCH` when the process is gone.
    pub fn look(&mut self, by_now: impl FnOnce() -> Rest) -> io::Result<Io> {
        let before = self.unclaimed;
        self.update(by_now)?;
        self.unclaimed = self.unclaimed.minus(before);
        self.own = self.own.plus(before);
        Ok(self.own)
    }

    /// Looks again, and leaves to children what they may still claim.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn update(&mut self, by_now: impl FnOnce() -> Rest) -> io::Result<()> {
        let seen = self.source.account()?;
        let new = seen.minus(std::mem::replace(&mut self.seen, seen));
        if new == Io::default() {
            return Ok(());
        }
        if by_now() == Rest::Known {
            self.rest = Rest::Known;
        }
        let own = match &mut self.threads {
            None => new,
            Some(known) => {
                let now = threads(self.id);
                let before = |thread| known.get(thread).copied().unwrap_or_default();
                let by_threads =
                    sum(&now.iter().map(|(t, io)| io.minus(before(t))).collect::<Vec<_>>());
                *known = now;
                let rest = beyond(new, by_threads, &mut self.early);
                let children = match self.rest {
                    Rest::Known => rest.min(self.coming),
                    Rest::Children => rest,
                };
                self.coming = self.coming.minus(children);
                self.unclaimed = self.unclaimed.plus(rest.minus(children));
                by_threads
            }
        };
        self.own = self.own.plus(own);
        Ok(())
    }

    /// Whether the process may have waited for a child that ended unnoticed: look at its children now, and then at it
    /// again.
    #[must_use]
    pub fn may_be_bereaved(&self) -> bool {
        self.unclaimed != Io::default()
    }

    /// The process has a child: what the kernel will add of it must be told from its own.
    pub fn expect_children(&mut self) {
        if self.threads.is_none() {
            self.threads = Some(threads(self.id));
        }
    }

    /// A child has ended that leaves so much: that arrives when the process waits for it, if it has not done so
    /// already.
    pub fn inherit(&mut self, left: Io) {
        self.expect_children();
        let arrived = self.unclaimed.min(left);
        self.unclaimed = self.unclaimed.minus(arrived);
        self.coming = self.coming.plus(left.minus(arrived));
    }

    /// The process has ended, and so have all of its children that are known to have: the rest is its own.
    pub fn settle(&mut self) {
        self.own = self.own.plus(std::mem::take(&mut self.unclaimed));
    }

    /// What a process that has ended leaves to its parent's account: its own and that of the children that it waited
    /// for, with all that these left.
    #[must_use]
    pub fn left(&self) -> Io {
        self.seen.max(self.own).plus(self.coming)
    }
}

#[cfg(test)]
mod tests;
