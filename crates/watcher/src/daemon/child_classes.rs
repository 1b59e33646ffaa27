//! Classes of children: each child of a member gets its own, with the same limits, where the limits say so.

use discnice_ledger::member::Charged;
use discnice_ledger::outside::Reason;
use discnice_ledger::policy::{Choice, Pace};
use discnice_registry::{MappedClass, classes, name};

use crate::daemon::tuning;
use crate::daemon::watched_class::WatchedClass;
use crate::watch::{Child, enlist};

/// Makes the class of a child, which is a member of it; where that is not possible, of its parent's.
pub(crate) fn settle(
    parent: &MappedClass,
    child: &Child,
    kept: &[WatchedClass],
) -> Option<MappedClass> {
    let listed = parent.class.listed(child.pinned.id());
    let account = listed.and_then(|(slot, member)| parent.class.held(slot)?.of(member));
    if account.is_some_and(|account| account.started == child.pinned.process.started) {
        // It was attached just now, as a descendant of another one.
        return None;
    }
    let siblings = kept.iter().filter(|kept| is_child(kept, parent)).count();
    let made = (siblings < tuning::daemon::CHILD_CLASSES).then(|| make(parent, child)).flatten();
    if made.is_none() {
        // Without a slot it is found again, and charged to its parent when that waits for it.
        let _ = enlist(parent.class, &child.pinned, Charged::default(), Reason::Descendant);
    }
    made
}

fn make(parent: &MappedClass, child: &Child) -> Option<MappedClass> {
    let (made, _) =
        classes::find_or_create(&name::of_child(&parent.name(), child.pinned.id())).ok()?;
    made.class.set_parent(parent.block);
    follow(parent, &made);
    let slot = enlist(made.class, &child.pinned, Charged::default(), Reason::Descendant);
    if slot.is_none() {
        let _ = made.remove();
    }
    slot.map(|_| made)
}

/// Gives a child's class what its parent's has: the limits, and whether it is paused; returns whether it had something else.
pub(crate) fn follow(parent: &MappedClass, child: &MappedClass) -> bool {
    let limits = parent.class.limits().with_per_child(false);
    // A program is the policy of the one class that it was named for.
    let own = limits.pace().policy == Choice::Program;
    let pace = if own { Pace::DEFAULT } else { limits.pace() };
    let (limits, paused) = (limits.with_pace(pace), parent.class.is_paused());
    let (is_limited, is_paused) =
        (child.class.limits() == limits, child.class.is_paused() == paused);
    if !is_limited {
        child.set_limits(&limits);
    }
    if !is_paused {
        child.set_paused(paused);
    }
    !is_limited || !is_paused
}

/// Whether this is the class of a child of members of `parent`.
pub(crate) fn is_child(kept: &WatchedClass, parent: &MappedClass) -> bool {
    kept.child_of == Some(parent.block)
}
