//! A supervised process: its books, and its descriptors.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use discnice_ledger::member::{Books, Charged};
use discnice_ledger::outside::Mechanism;
use discnice_ledger::{Board, Class, Member, MemberId, State};
use discnice_sys::file::Status;
use discnice_sys::{process, procfs};
use discnice_units::Bytes;

use crate::descriptor::Descriptor;
use crate::proc;

/// Notes when a member's process started, so that a later one of its number is not taken for it.
fn note_start(class: &Class, slot: MemberId, member: &Member) {
    if let (Some(held), Some(stat)) = (class.held(slot), procfs::stat(member.process())) {
        held.begin(member, stat.started);
    }
}

/// Whether a slot lists an earlier process with its number, which was killed.
fn is_of_earlier(class: &Class, slot: MemberId, member: &Member) -> bool {
    let noted = class.held(slot).and_then(|held| held.of(member));
    let started = || procfs::stat(member.process()).map(|stat| stat.started);
    noted.filter(|noted| !noted.is_apart()).is_some_and(|noted| started() != Some(noted.started))
}

/// What regulates a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This supervisor.
    Supervisor,
    /// Our library, from inside: no other process may enter the process's account.
    Library,
    /// Our library did until the process began to execute another program.
    None,
}

/// Keeps a process's charges.
#[derive(Debug)]
enum Ledger {
    /// In its slot of the class.
    Member(&'static Member),
    /// Here, because there was no slot.
    Own(Books),
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its id.
    pub id: u32,
    /// Itself; none where there was no descriptor left.
    pinned: Option<OwnedFd>,
    class: &'static Class,
    /// Board that tells if others are busy.
    pub(crate) board: Option<&'static Board>,
    ledger: Ledger,
    read: AtomicU64,
    written: AtomicU64,
    /// Nothing was charged for it before we knew it, so all that its threads did is to be charged.
    pub is_new: bool,
    descriptors: Mutex<HashMap<i32, Arc<Descriptor>>>,
}

impl Process {
    /// Enters a process into the class's list, or finds it there.
    pub fn enlist(class: &'static Class, board: Option<&'static Board>, id: u32) -> Self {
        let listed = class.listed(id).filter(|(slot, member)| !is_of_earlier(class, *slot, member));
        let found = listed.map(|(_, member)| member);
        let ledger = match found {
            Some(member) => Ledger::Member(member),
            None => match class.register(id, Charged::default(), process::exists) {
                Some((slot, member)) => {
                    note_start(class, slot, member);
                    Ledger::Member(member)
                }
                None => Ledger::Own(Books::new()),
            },
        };
        if let Ledger::Member(member) = &ledger
            && (found.is_none() || member.state() == State::Executing)
        {
            member.set_name(&proc::name_of(id));
            member.set_state(State::Notified);
        }
        let charged = match &ledger {
            Ledger::Member(member) => member.books().charged(),
            Ledger::Own(books) => books.charged(),
        };
        Self {
            id,
            pinned: proc::pin(id),
            class,
            board,
            ledger,
            read: AtomicU64::new(charged.read),
            written: AtomicU64::new(charged.written),
            is_new: charged == Charged::default(),
            descriptors: Mutex::default(),
        }
    }

    /// Its books.
    pub fn books(&self) -> &Books {
        match &self.ledger {
            Ledger::Member(member) => member.books(),
            Ledger::Own(books) => books,
        }
    }

    /// Returns what regulates the process.
    pub fn holder(&self) -> Holder {
        match &self.ledger {
            Ledger::Member(member) if member.process() == self.id => match member.state() {
                State::Active => Holder::Library,
                State::Executing => Holder::None,
                _ => Holder::Supervisor,
            },
            _ => Holder::Supervisor,
        }
    }

    /// Goes on where our library has left off, in a program that it cannot enter.
    pub fn take_over(&self) {
        if let Ledger::Member(member) = &self.ledger {
            let charged = member.books().charged();
            self.read.store(charged.read, Ordering::Relaxed);
            self.written.store(charged.written, Ordering::Relaxed);
            member.set_name(&proc::name_of(self.id));
            member.set_state(State::Notified);
        }
    }

    /// Adds what a thread did, or we did for it; returns all that the process did.
    pub fn add(&self, new: Charged) -> Charged {
        self.class.watcher().note_charged(Some(Mechanism::Seccomp), Bytes::new(new.total()));
        let read = self.read.fetch_add(new.read, Ordering::Relaxed) + new.read;
        let written = self.written.fetch_add(new.written, Ordering::Relaxed) + new.written;
        Charged { read, written }
    }

    /// Borrows one of its descriptors: see [`proc::borrow`].
    pub fn borrow(&self, fd: i32) -> Option<OwnedFd> {
        match &self.pinned {
            Some(pinned) => proc::borrow(self.id, pinned, fd),
            None => proc::borrow(self.id, &proc::pin(self.id)?, fd),
        }
    }

    /// What is known of a descriptor that means this file now; and of the file that it meant before, if that was
    /// another one and something is left to be done with it.
    pub fn recognise(
        &self,
        fd: i32,
        status: &Status,
        is_local: bool,
    ) -> (Arc<Descriptor>, Option<Arc<Descriptor>>) {
        let mut all = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(fd).or_default();
        let mut before = None;
        if !known.is(status) {
            let new = Arc::new(Descriptor::of(status));
            before = Some(std::mem::replace(known, new)).filter(|old| old.file.is_unfinished());
        }
        known.set_local(is_local);
        (Arc::clone(known), before)
    }

    /// Takes what descriptors meant that are closed, or mean other files now, where something is left to be done with the
    /// file: of a process that has ended, all of them.
    pub fn take_closed(&self, has_ended: bool) -> Vec<Arc<Descriptor>> {
        let mut all = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        let is_closed = |fd: &i32, known: &mut Arc<Descriptor>| {
            known.file.is_unfinished()
                && (has_ended
                    || known.path().is_some_and(|path| self.path(*fd).as_ref() != Some(path)))
        };
        all.extract_if(is_closed).map(|(_, descriptor)| descriptor).collect()
    }

    /// Remembers the path by which a file can be opened once its descriptor is closed.
    pub fn note_path(&self, fd: i32, descriptor: &Descriptor) {
        descriptor.note_path(|| self.path(fd));
    }

    /// The path of a descriptor's file, which no file system is asked for.
    fn path(&self, fd: i32) -> Option<PathBuf> {
        let path = fs::read_link(format!("/proc/{}/fd/{fd}", self.id));
        // What has no name there has another kind of text.
        path.ok().filter(|path| path.is_absolute())
    }

    /// What is known of a descriptor.
    pub fn descriptor(&self, fd: i32) -> Arc<Descriptor> {
        let mut all = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(fd).or_default())
    }

    /// All that anything is known of.
    pub fn descriptors(&self) -> Vec<(i32, Arc<Descriptor>)> {
        let all = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(fd, descriptor)| (*fd, Arc::clone(descriptor))).collect()
    }

    /// Notes the end of the process: its slot is free again.
    pub fn leave(&self) {
        if let Ledger::Member(member) = &self.ledger
            && member.process() == self.id
            && member.state() == State::Notified
        {
            member.release();
        }
    }
}
