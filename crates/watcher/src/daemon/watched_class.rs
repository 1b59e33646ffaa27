//! One class that policyd watches, and what all of them come to.

use std::rc::Rc;

use discnice_ledger::policy::memory::Regulation;
use discnice_ledger::primitive::Ordering;
use discnice_registry::MappedClass;
use discnice_sys::block::BlockId;
use discnice_sys::{process, time};
use discnice_units::{Moment, Nanos};

use crate::daemon::memory_pressure::Guest;
use crate::daemon::tuning;
use crate::discovery::census::Census;
use crate::discovery::newcomer::Newcomer;
use crate::process::lives;
use crate::schedule::{beats, crowd};
use crate::{Helpers, Watch};

/// One class.
#[derive(Debug)]
pub(crate) struct WatchedClass {
    pub(crate) mapped: MappedClass,
    /// The class of which a member's child has this one. Kept here, as the class itself is in no cache.
    pub(crate) child_of: Option<BlockId>,
    /// Elsewhere in memory, so that what is looked at again and again for each class lies together.
    pub(crate) watch: Box<Watch>,
    /// Says if the class is paused for its memory.
    memory: Regulation,
    /// When to look at it next.
    pub(crate) due: Moment,
    /// Longest time for which its members need not be asked for children.
    patience: Nanos,
    /// Until when its members are likely to have children that only the census finds.
    lively_until: Moment,
    /// Until when a process that was just forked is likely to join it.
    pub(crate) joining_until: Moment,
    /// Set if a process in it is held.
    pub(crate) holds: bool,
    /// Set if a process in it is held while others of it may run.
    alert: bool,
    /// Since when it has no members.
    empty_since: Option<Moment>,
    /// How many are in it.
    pub(crate) watched: usize,
    /// When its pages are let go next.
    tidy_at: Moment,
    /// Set if another process watches it.
    is_taken: bool,
    /// Set if the class has had no members for so long that none is on the way.
    is_deserted: bool,
    /// Changes of its limits that the classes of its members' children have followed.
    followed: u32,
}

impl WatchedClass {
    /// Begins to watch the class.
    pub(crate) fn new(mapped: MappedClass, helpers: Helpers) -> Self {
        let mut watch = Box::new(Watch::new(mapped.class, mapped.block, helpers));
        watch.serve_children();
        let (due, patience) = (Moment::FIRST, Nanos(0));
        let (lively_until, joining_until) = (Moment::FIRST, Moment::FIRST);
        let (holds, alert, empty_since, watched) = (false, false, None, 0);
        let (is_taken, is_deserted) = (false, false);
        let memory = Regulation::default();
        let tidy_at = time::now().plus(tuning::daemon::TIDY);
        Self {
            child_of: mapped.class.parent(),
            mapped,
            watch,
            memory,
            due,
            patience,
            lively_until,
            joining_until,
            holds,
            alert,
            empty_since,
            watched,
            tidy_at,
            is_taken,
            is_deserted,
            followed: mapped.class.changes().load(Ordering::Acquire),
        }
    }

    /// Notes that a process has joined the class, or is about to.
    pub(crate) fn expect_members(&mut self, now: Moment) {
        self.watch.look_for_members();
        (self.due, self.patience, self.empty_since) = (Moment::FIRST, Nanos(0), None);
        (self.watched, self.lively_until) =
            (self.watched.max(1), now.plus(tuning::discovery::IDLE));
        self.joining_until = now.plus(tuning::daemon::JOINING);
    }

    /// Whether each child of a member gets a class of its own.
    pub(crate) fn is_per_child(&self) -> bool {
        self.mapped.class.is_per_child()
    }

    /// Whether its limits have changed since this was asked last.
    pub(crate) fn has_changed(&mut self) -> bool {
        let changes = self.mapped.class.changes().load(Ordering::Acquire);
        changes != std::mem::replace(&mut self.followed, changes)
    }

    /// The class as far as its memory goes.
    pub(crate) fn as_guest(&mut self) -> Guest<'_> {
        let Self { mapped, watch, memory, due, .. } = self;
        Guest { class: mapped.class, watch, regulation: memory, due }
    }

    /// Takes in those newcomers that have become members, and looks at them now.
    pub(crate) fn meet(&mut self, now: Moment, newcomers: &[Rc<Newcomer>]) {
        self.joining_until = now.plus(tuning::daemon::JOINING);
        if self.watch.meet(newcomers) {
            self.due = Moment::FIRST;
        }
    }

    /// Returns true if its last member ended so lately that children of it may not have been found
    /// yet.
    pub(crate) fn may_have_orphans(&self, now: Moment) -> bool {
        self.empty_since.is_none_or(|since| now < since.plus(tuning::discovery::ORPHANS))
    }

    /// Releases pages that were not touched for a while, at the same time as all other classes.
    pub(crate) fn tidy(&mut self, now: Moment) {
        if now >= self.tidy_at && !self.holds {
            self.tidy_at = now.plus(tuning::daemon::TIDY);
            self.mapped.let_pages_go();
        }
    }

    /// Does what is due, of so many processes that are watched in all.
    pub(crate) fn step(&mut self, now: Moment, watched: usize, census: &mut Census) {
        let due = self.watch.step(watched, census).min(now.plus(tuning::daemon::SHOW));
        self.lively_until = self.watch.lively_until();
        self.holds = self.watch.holds();
        let apart = due.since(now);
        self.due = if self.holds { due } else { on_beat(due, apart, watched) };
        self.patience = if self.watch.has_members_outside() { Nanos(0) } else { apart };
        self.watched = self.watch.len();
        // What stands as a whole has no children that are to be found soon.
        self.alert = self.holds && !self.mapped.class.is_paused();
        let since = self.empty_since.get_or_insert(now);
        if !self.watch.is_empty() {
            *since = now;
        }
        self.is_deserted = now >= since.plus(tuning::daemon::EMPTY);
        self.is_taken = !self.mapped.class.watcher().claim(process::id(), now.0, lives);
    }

    /// Returns true if it need not, or cannot, be watched any more. What is said of a class without members still holds for
    /// its members' children, which `are_left`.
    pub(crate) fn is_over(&self, are_left: impl FnOnce() -> bool) -> bool {
        self.is_taken || self.is_deserted && !are_left()
    }
}

impl AsMut<Watch> for WatchedClass {
    fn as_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }
}

/// Puts off to a time at which all classes are looked at what is due so far from now, of so many processes that are watched.
fn on_beat(due: Moment, apart: Nanos, watched: usize) -> Moment {
    let Some(beat) = crowd::beat(apart, watched) else { return due };
    // Looks at the idle of a crowd are so far apart that this is a small part of it.
    let batch = crowd::batch(watched).min(tuning::daemon::SLOW_BEAT);
    let beat = if apart < tuning::daemon::PATIENT { beat } else { beat.max(batch) };
    beats::at_or_after(due, beat)
}

/// What all classes come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    /// When the first of them is to be looked at.
    pub(crate) due: Moment,
    /// Longest time for which none of their members need be asked for children.
    pub(crate) patience: Nanos,
    /// Until when children that only the census finds, and members that were just forked, are
    /// likely.
    pub(crate) lively_until: Moment,
    pub(crate) joining_until: Moment,
    /// How many processes are watched.
    pub(crate) watched: usize,
    /// Set if any process is held.
    pub(crate) holds: bool,
    /// Set if any process is held of a class that is not paused as a whole.
    pub(crate) alert: bool,
    /// Set if any of them is the class of a child.
    pub(crate) has_children: bool,
}

impl Sum {
    pub(crate) fn of(every: &[WatchedClass]) -> Self {
        let nothing = Self { due: Moment::NEVER, patience: Nanos(u64::MAX), ..Self::default() };
        every.iter().fold(nothing, |sum, kept| Self {
            due: sum.due.min(kept.due),
            patience: sum.patience.min(kept.patience),
            lively_until: sum.lively_until.max(kept.lively_until),
            joining_until: sum.joining_until.max(kept.joining_until),
            watched: sum.watched + kept.watched,
            holds: sum.holds || kept.holds,
            alert: sum.alert || kept.alert,
            has_children: sum.has_children || kept.child_of.is_some(),
        })
    }
}
