//! Calls on names, inodes and directories.

use core::ffi::{c_char, c_void};

use discnice_ledger::Class;
use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Conditions, Decision};
use discnice_regulator::{Access, Thread, Ticket};
use discnice_sys::{Errno, cycles, file, process};

use crate::known::Named;
use crate::thread::{Local, local};
use crate::{engine, faults, real};

/// What a call looks at, as far as it can be asked about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Object {
    Unknown,
    /// A name, below a directory's descriptor.
    Named(i32, *const c_char),
    /// What a descriptor means.
    Open(i32),
}

impl Object {
    fn status(self) -> Option<file::Status> {
        match self {
            Self::Unknown => None,
            Self::Named(directory, name) => file::status_at(directory, name).ok(),
            Self::Open(fd) => file::status(fd).ok(),
        }
    }
}

/// A call that may read directories or inodes, or do I/O as a side effect.
#[inline(always)]
pub fn metadata<T>(real: impl FnOnce() -> T) -> T {
    metadata_of(Access::Looks, Object::Unknown, real)
}

#[inline(always)]
pub(super) fn metadata_of<T>(access: Access, object: Object, real: impl FnOnce() -> T) -> T {
    let Some(class) = engine::class() else { return real() };
    let local = local();
    let why = match decision::metadata(&Named { thread: &local.thread }) {
        Decision::Proceed(why) if why == Why::Unlimited || !class.predicts() => why,
        decision => return slow_metadata(local, decision, access, object, real),
    };
    local.thread.proceed(why, 0);
    let before = if why == Why::Unlimited { 0 } else { cycles::now() };
    let result = real();
    let is_due = if why == Why::Unlimited {
        local.thread.countdown.count_unlimited(0).is_some()
    } else {
        let cycles = cycles::now().wrapping_sub(before);
        local.thread.countdown.count_metadata(cycles).is_some() || faults::any()
    };
    if is_due {
        finish_metadata(local, access, object, Ticket::FREE);
    }
    result
}

/// Makes a call on names that is admitted first, or of which everything is predicted.
#[inline(never)]
fn slow_metadata<T>(
    local: &Local,
    decision: Decision,
    access: Access,
    object: Object,
    real: impl FnOnce() -> T,
) -> T {
    let (ticket, begun) = begin_slowly(&local.thread, (decision, None));
    let result = real();
    end_slowly(local, access, object, ticket, begun);
    result
}

/// Admits a call on names; returns what was reserved, and when it begins. What hooks share is
/// a function, so that each costs little.
#[inline(never)]
fn begin_slowly(thread: &Thread, (decision, turn): (Decision, Option<Why>)) -> (Ticket, u64) {
    let ticket = match decision {
        Decision::Proceed(why) => {
            thread.outcomes.because(turn.unwrap_or(why));
            Ticket::FREE
        }
        _ => admit_metadata(thread),
    };
    if engine::class().is_some_and(Class::predicts) {
        thread.note_waits_before(process::waits);
    }
    (ticket, cycles::now())
}

/// Counts a call on names that has begun so, and looks at the account if that is due: where everything is predicted, its
/// waits decide what its time leaves open.
#[inline(never)]
fn end_slowly(local: &Local, access: Access, object: Object, ticket: Ticket, begun: u64) {
    let thread = &local.thread;
    let cycles = cycles::now().wrapping_sub(begun);
    thread.count_admitted(0);
    let due = if engine::class().is_some_and(Class::predicts) {
        thread.count_waits(cycles, process::waits)
    } else if thread.outcomes.why() == Why::Unlimited {
        thread.countdown.count_unlimited(0)
    } else {
        thread.countdown.count_metadata(cycles)
    };
    if due.is_some() || ticket != Ticket::FREE || faults::any() {
        finish_metadata(local, access, object, ticket);
    }
}

/// What was reserved for a metadata operation, and when it began; nothing without a class.
pub(super) type Begun = Option<(Ticket, u64)>;

/// Performs a metadata operation that has begun so. All else that it needs is in functions that the hooks share.
#[inline(always)]
pub(super) fn perform<T>(
    begun: Begun,
    access: Access,
    object: Object,
    real: impl FnOnce() -> T,
) -> T {
    let Some((ticket, begun)) = begun else { return real() };
    let result = real();
    end(access, object, ticket, begun);
    result
}

#[inline(never)]
fn begin() -> Begun {
    engine::class()?;
    begin_after(name())
}

#[inline(never)]
fn begin_change(directory: i32, path: *const c_char) -> Begun {
    engine::class()?;
    begin_after(name_to_change(directory, path))
}

/// Begins an operation for which `turn` says why it goes on, if it took its turn.
#[inline(never)]
pub(super) fn begin_after(turn: Option<Why>) -> Begun {
    let thread = &local().thread;
    Some(begin_slowly(thread, (decision::metadata(&Named { thread }), turn)))
}

#[inline(never)]
fn end(access: Access, object: Object, ticket: Ticket, begun: u64) {
    end_slowly(local(), access, object, ticket, begun);
}

/// A metadata operation: a call on names or inodes.
#[inline(always)]
pub fn operation<T>(real: impl FnOnce() -> T) -> T {
    perform(begin(), Access::Looks, Object::Unknown, real)
}

/// A metadata operation that looks up `name` below `directory`.
#[inline(always)]
pub fn look<T>(directory: i32, path: *const c_char, real: impl FnOnce() -> T) -> T {
    perform(begin(), Access::Looks, Object::Named(directory, path), real)
}

/// A call that returns the next entry of a directory.
///
/// # Safety
/// `directory` is an open stream, and `real` returns null or one of its entries.
#[inline(always)]
pub unsafe fn list(directory: *mut c_void, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !follows_daemons() {
        return metadata(real);
    }
    // SAFETY: the caller vouches for the stream.
    let fd = unsafe { real::descriptor_of_directory(directory) };
    let entry = metadata_of(Access::Looks, Object::Open(fd), real);
    if !entry.is_null() {
        // SAFETY: struct dirent of 64-bit machines begins with the number of the inode, and an entry stays until
        // the next call on its stream.
        note_entry(fd, unsafe { entry.cast::<u64>().read_unaligned() });
    }
    entry
}

#[inline(always)]
fn follows_daemons() -> bool {
    engine::class().is_some_and(|class| class.estimation().follows_daemons())
}

#[cold]
#[inline(never)]
fn note_entry(fd: i32, inode: u64) {
    if let (Ok(status), Some(regulator)) = (file::status(fd), engine::regulator()) {
        regulator.listed(status.into(), inode);
    }
}

/// A metadata operation that changes `path`, a name below `directory`, or what it stands for; mostly known by then.
#[inline(always)]
pub fn change<T>(directory: i32, path: *const c_char, real: impl FnOnce() -> T) -> T {
    perform(begin_change(directory, path), Access::Changes, Object::Unknown, real)
}

/// As [`name`], for an operation that changes `path`. In a class that gives way it waits for the disk, too, and tells on
/// which disk that is.
#[inline(never)]
pub(super) fn name_to_change(directory: i32, path: *const c_char) -> Option<Why> {
    let turn = name();
    let Some(class) = engine::class() else { return turn };
    let thread = &local().thread;
    let (is_asked, yields) = (thread.names.count_change(), class.yields());
    let may_wait = yields && class.is_limited();
    if !is_asked && !may_wait {
        return turn;
    }
    let Some(regulator) = engine::regulator() else { return turn };
    if is_asked {
        let bytes = regulator.count_changes(thread);
        if yields && let Some(status) = place(directory, path) {
            let _ = regulator.note_place(status.into(), bytes);
        }
    }
    if may_wait && regulator.admit_change() { Some(Why::Reserved) } else { turn }
}

/// Something on the file system of a name that may not be there yet.
fn place(directory: i32, path: *const c_char) -> Option<file::Status> {
    match file::status_at(directory, path) {
        // SAFETY: the kernel has read the name, to its end.
        Err(Errno::NOENT) => unsafe { file::status_of_parent(directory, path) }.ok(),
        status => status.ok(),
    }
}

/// Waits for the place of one metadata operation, or only counts it; returns why it goes on if it
/// had to take its turn.
#[inline(always)]
fn name() -> Option<Why> {
    engine::class()?;
    let thread = &local().thread;
    if (Named { thread }).limits_names() {
        admit_operation(thread);
        return Some(Why::Reserved);
    }
    if thread.names.count().is_some() {
        count_operations(thread);
    }
    None
}

#[cold]
#[inline(never)]
fn admit_operation(thread: &Thread) {
    if let Some(regulator) = engine::regulator() {
        regulator.admit_operation(thread);
    }
}

#[cold]
#[inline(never)]
fn count_operations(thread: &Thread) {
    if let Some(regulator) = engine::regulator() {
        regulator.count_operations(thread);
    }
}

#[cold]
fn admit_metadata(thread: &Thread) -> Ticket {
    engine::regulator().map_or(Ticket::FREE, |regulator| regulator.admit_metadata(thread))
}

#[cold]
fn finish_metadata(local: &Local, access: Access, object: Object, ticket: Ticket) {
    if let Some(regulator) = engine::regulator() {
        let waited = local.thread.switches.waited() > 0 && follows_daemons();
        let status = if waited { object.status() } else { None };
        let counted = status.is_some_and(|status| regulator.looked_at(status.into()));
        let access = if counted { Access::Counted } else { access };
        regulator.complete_metadata(&local.thread, access, ticket);
        faults::check();
    }
}
