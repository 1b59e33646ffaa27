//! Takes running processes into classes, and lets them go.

use anyhow::Context;
use discnice_ledger::State;
use discnice_ledger::member::Charged;
use discnice_ledger::outside::Reason;
use discnice_ledger::policy::Limits;
use discnice_processes::tree::{Process, Tree};
use discnice_sys::process;
use discnice_units::Nanos;
use discnice_watcher::accounting::{OwnAccount, Rest};
use discnice_watcher::daemon::client::Confirmation;
use discnice_watcher::process::{Pinned, pin};
use discnice_watcher::watch::enlist;

use crate::classes::{self, MappedClass, Origin};
use crate::family::Family;
use crate::watching;

/// What a running process moves before it stands for the first time is paid for in advance, without credit for the time in
/// which it had no limit: it comes at full speed, and 50 ms of a limit are what passes between two looks.
pub const ADVANCE: Nanos = Nanos::from_millis(50);

/// Makes a process of no class, with its descendants, a new class of this name, without limits and watched.
///
/// # Errors
/// No class can be made, or no daemon can be had. The process is in no class then.
pub fn take_in(name: &str, pinned: Pinned) -> anyhow::Result<MappedClass> {
    let (found, origin) = classes::find_or_create(name)?;
    if origin == Origin::New {
        found.set_limits(&Limits::UNLIMITED);
    }
    let process = pinned.process;
    let all = [pinned];
    call_daemon(&found, &all)?;
    for one in &all {
        enter(&found, one, Reason::Attached)?;
    }
    enter_descendants(&found, &Tree::new(&[process]));
    Ok(found)
}

/// Returns when the daemon watches the class, with all its present members.
///
/// # Errors
/// There is no daemon, and the processes are as they were found.
pub fn call_daemon(found: &MappedClass, pinned: &[Pinned]) -> anyhow::Result<()> {
    watching::watch(found, Confirmation::Awaited)
        .inspect_err(|_| release(found, pinned))
        .context("no daemon to limit the processes (see `discnice policyd --help`)")
}

/// Makes a process a member; what it has done so far costs nothing.
///
/// # Errors
/// It has ended, or the class is full.
pub fn enter(found: &MappedClass, pinned: &Pinned, reason: Reason) -> anyhow::Result<()> {
    let account = OwnAccount::open(pinned.id(), Charged::default(), || Rest::Known)
        .with_context(|| format!("process {} has ended", pinned.id()))?;
    enlist(found.class, pinned, account.own().into(), reason).context("the class is full")?;
    Ok(())
}

/// Enters the present descendants of the attached processes. The watcher finds later ones, and
/// those that end or are forked meanwhile.
pub fn enter_descendants(found: &MappedClass, tree: &Tree) {
    // A child that was just born may have a class of its own already.
    let family = Family::of(*found);
    let is_listed = |id| family.classes().any(|found| found.class.listed(id).is_some());
    for stat in tree.iter().filter(|stat| !is_listed(stat.id)) {
        if let Ok(pinned) = pin(stat.id.cast_signed()) {
            let _ = enter(found, &pinned, Reason::Descendant);
        }
    }
}

/// Leaves the processes as they were found, with their descendants.
pub fn release(found: &MappedClass, pinned: &[Pinned]) {
    if found.is_automatic() {
        release_attached(found, |_| true);
        // Another command may have been first.
        let _ = found.remove();
    } else {
        let roots: Vec<Process> = pinned.iter().map(|one| one.process).collect();
        release_tree(found, &roots);
    }
}

/// Releases those of these processes and their descendants that were attached, paused or not. They go on once the
/// watcher has seen that.
pub fn release_tree(found: &MappedClass, roots: &[Process]) {
    let tree = Tree::new(roots);
    // Children may be in classes of their own.
    let family = Family::of(*found);
    for found in family.classes() {
        release_attached(found, |id| tree.iter().any(|one| one.id == id));
        found.wake();
    }
}

fn release_attached(found: &MappedClass, is_ours: impl Fn(u32) -> bool) {
    for member in found.class.living(process::exists) {
        if member.state() == State::Outside && is_ours(member.process()) {
            member.release();
        }
    }
}
