//! A class together with those that its members' children have for themselves (`--per-child`).

#![allow(unsafe_code, reason = "classes of children that are gone are unmapped")]

use std::thread;
use std::time::{Duration, Instant};

use discnice_registry::classes::of_children;
use discnice_sys::block::BlockId;
use discnice_sys::{process, time};
use discnice_watcher::process::lives;

use crate::classes::MappedClass;
use crate::counters::Counters;
use crate::looks::RESTS_PER_LOOK;

/// Members are not looked for more often.
const APART: Duration = Duration::from_millis(50);
/// A watcher charges what a process that has ended moved last within this, unless it does not get the processor.
const SETTLED: Duration = Duration::from_millis(200);

/// A class and those of children. A child's class stays mapped here after it was removed until it has been counted, so a
/// child that was seen once is counted to its end.
#[derive(Debug)]
pub struct Family {
    own: MappedClass,
    children: Vec<MappedClass>,
    /// What children's classes came to that are gone.
    gone: Counters,
    next: Instant,
}

impl Family {
    /// The class and those of children that there are now.
    pub fn of(own: MappedClass) -> Self {
        let (children, gone) = (Vec::new(), Counters::ZERO);
        let mut family = Self { own, children, gone, next: Instant::now() };
        family.look();
        family
    }

    /// Looks for classes of children, unless it did so just now.
    pub fn look(&mut self) {
        let begun = Instant::now();
        if begun < self.next || !self.own.class.is_per_child() && self.children.is_empty() {
            return;
        }
        // Before their counters are read: nothing is added to those of one that is gone.
        for gone in self.children.extract_if(.., |child| child.is_gone()) {
            self.gone = self.gone.plus(&Counters::of(gone.class));
            // SAFETY: no reference to it is handed out for longer than `self` is borrowed.
            unsafe { gone.unmap() };
        }
        let known: Vec<BlockId> = self.children.iter().map(|child| child.block).collect();
        // What cannot be listed now is seen later.
        self.children.extend(of_children(&self.own, &known).unwrap_or_default());
        self.next = Instant::now() + (begun.elapsed() * RESTS_PER_LOOK).max(APART);
    }

    /// Waits, a moment at most, for the watcher to charge what members that have ended moved last.
    pub fn settle(&mut self) {
        let deadline = Instant::now() + SETTLED;
        while self.classes().any(is_owed) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        self.next = Instant::now();
        self.look();
    }

    /// The class of the parents of these children.
    pub fn own(&self) -> &MappedClass {
        &self.own
    }

    /// All of them, that one first.
    pub fn classes(&self) -> impl Iterator<Item = &MappedClass> {
        std::iter::once(&self.own).chain(&self.children)
    }

    /// What all of them come to, those of children that are gone included.
    pub fn counters(&self) -> Counters {
        let living = self.classes().map(|found| Counters::of(found.class));
        living.fold(self.gone, |sum, one| sum.plus(&one))
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for child in self.children.drain(..) {
            // SAFETY: as in `look`.
            unsafe { child.unmap() };
        }
    }
}

/// Whether a watcher has yet to take leave of a member that has ended.
fn is_owed(found: &MappedClass) -> bool {
    let has_ended = |process: u32| !process::exists(process);
    found.class.watcher().process(time::now().0, lives).is_some()
        && found.class.living_slots(has_ended).next().is_some()
}
