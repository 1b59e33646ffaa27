//! The processes of a class that exist, as far as asking few questions tells.

use discnice_ledger::member::Charged;
use discnice_ledger::outside::{Account, Reason};
use discnice_ledger::{Class, Member, MemberId, State};
use discnice_sys::block::BlockId;
use discnice_sys::{process, procfs, time};
use discnice_watcher::accounting::{OwnAccount, Rest};
use discnice_watcher::discovery::pid_namespace;
use discnice_watcher::process::{lives, name};

use crate::classes::MappedClass;

/// A member with a process that exists and has not ended.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// Its slot.
    pub member: &'a Member,
    /// What holding it from outside has come to.
    pub outside: Option<Account>,
    /// What holding it from outside has come to, if it is held now.
    pub held: Option<Account>,
    /// The process that should hold it, if it is not held because that one is stopped.
    pub stopped_holder: Option<u32>,
    /// What it has moved, both ways, if it has not run since a watcher looked.
    bytes: Option<u64>,
}

impl<'a> Running<'a> {
    /// The members of a class.
    pub fn all(found: &MappedClass) -> impl Iterator<Item = Running<'static>> {
        let (class, block) = (found.class, found.block);
        let slots = class.living_slots(|_| true);
        slots.filter_map(move |(slot, member)| Running::find(class, block, slot, member))
    }

    /// The process of this number, if the class lists it, and not an ended one that had the number.
    pub fn listed(found: &MappedClass, process: u32) -> Option<Running<'static>> {
        let (slot, member) = found.class.listed(process)?;
        Running::find(found.class, found.block, slot, member)
    }

    fn find(class: &Class, block: BlockId, slot: MemberId, member: &'a Member) -> Option<Self> {
        let outside = class.held(slot).and_then(|held| held.of(member));
        let bytes = outside.and_then(|account| seen(member.process(), account));
        let is_it = |outside| is_member(class, block, member, outside);
        if bytes.is_none() && !(is_running(member.process()) && is_it(outside)) {
            return None;
        }
        let wanted = outside.filter(|account| account.mechanism.is_some());
        let watched = wanted.is_some() && class.watcher().process(time::now().0, lives).is_some();
        let held = wanted.filter(|_| watched);
        let keeper = class.watcher().keeper().filter(|_| wanted.is_some() && !watched);
        let stopped_holder = keeper.filter(|keeper| is_stopped(*keeper));
        Some(Self { member, outside, held, stopped_holder, bytes })
    }

    /// The name of its program. Our library notes that of each program that it is in; one that it is not in may be another
    /// than when the process was listed.
    pub fn name(&self) -> String {
        let listed = self.member.name();
        let is_foreign =
            matches!(self.member.state(), State::Executing | State::Notified | State::Outside);
        let known_here = is_foreign && self.outside.is_some_and(|account| !account.is_apart());
        let now = if known_here { name(self.member.process()) } else { Vec::new() };
        let name = if now.is_empty() { &listed[..] } else { &now };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// Whether it stands still because the user wants it to.
    pub fn is_paused(&self) -> bool {
        self.held.is_some_and(|account| account.reason == Reason::Paused)
    }

    /// Whether it stands still for the memory that it has.
    pub fn rests(&self) -> bool {
        self.held.is_some_and(|account| account.reason == Reason::Memory)
    }

    /// What was charged for it since it became a member.
    pub fn charged(&self) -> Charged {
        self.member.books().charged().since(self.before())
    }

    /// What the kernel says that it moved since then, both ways; `None` where that is hidden.
    pub fn seen(&self) -> Option<u64> {
        let rest = if self.member.state() == State::Outside { Rest::Known } else { Rest::Children };
        let charged = self.member.books().charged();
        let bytes = self.bytes.or_else(|| {
            let io = OwnAccount::once(self.member.process(), charged, rest).ok()?;
            Some(io.read + io.written)
        });
        bytes.map(|bytes| bytes.saturating_sub(self.before().total()))
    }

    fn before(&self) -> Charged {
        self.outside.map_or(Charged::default(), |account| account.before)
    }
}

/// What a watcher saw that a process has moved, unless it has run since. One that has not has not ended either:
/// that takes processor time.
fn seen(process: u32, account: Account) -> Option<u64> {
    let seen = account.seen?;
    (time::of_process(process)?.0 == seen.ran).then_some(seen.bytes)
}

/// Whether a signal has stopped the process.
fn is_stopped(process: u32) -> bool {
    procfs::stat(process).is_some_and(|stat| stat.state == b'T')
}

/// Whether the process that exists is the one that the slot lists, and not a later one of its number: it started when a watcher
/// noted, or shows that it belongs to the class. One that executes a program shows nothing, and escapes if no watcher knows it.
fn is_member(class: &Class, block: BlockId, member: &Member, outside: Option<Account>) -> bool {
    // Without /proc nothing can be compared.
    let Some(stat) = procfs::stat(member.process()) else { return true };
    match outside {
        // The number means another process here.
        Some(account) => account.is_apart() || account.started == stat.started,
        None if member.state() == State::Executing => true,
        None => {
            pid_namespace::shows_membership(&stat.into(), block, &pid_namespace::mark(class, block))
        }
    }
}

/// Returns true if a process exists and has not ended: one that has ended still exists until its
/// parent reaps it. /proc tells for sure, and takes ten times as long as what tells of most.
fn is_running(process: u32) -> bool {
    process::has_memory(process)
        || (process::exists(process)
            // Without /proc no process is taken for ended.
            && !procfs::stat(process).is_some_and(|stat| stat.has_ended()))
}
