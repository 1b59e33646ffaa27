//! The classes that policyd watches.

use std::fmt;

use discnice_budget::Class;
use discnice_external::process::lives;
use discnice_external::{Helpers, Watch};
use discnice_sys::{process, time};
use discnice_units::Nanos;

/// An empty class is kept for so long: its next member may be on the way.
const EMPTY: Nanos = Nanos(Nanos::SECOND.0);
/// One that was killed is believed to live for a moment; its classes are asked for again.
const DYING: Nanos = Nanos(Nanos::SECOND.0);
const RETRY: Nanos = Nanos::from_millis(20);

/// A class that is mapped here.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    /// The class.
    pub class: &'static Class,
    /// Its segment's number.
    pub segment: i32,
}

/// Where classes are found. Implemented by the program, which knows their names and keys.
pub trait Classes: fmt::Debug {
    /// All classes of this user.
    fn all(&self) -> Vec<Mapped>;
    /// The class in this segment, if it is one of this user's.
    fn find(&self, segment: i32) -> Option<Mapped>;
    /// Unmaps a class; nobody uses it any more.
    fn unmap(&self, class: Mapped);
}

/// One class.
#[derive(Debug)]
struct Kept {
    mapped: Mapped,
    watch: Watch,
    /// Since when nobody is in it.
    empty_since: Option<Nanos>,
}

/// All of them.
#[derive(Debug)]
pub struct Keeper<'a> {
    classes: &'a dyn Classes,
    kept: Vec<Kept>,
    /// Classes that somebody else watches, and until when that may be one who is just dying.
    taken: Vec<(Mapped, Nanos)>,
    helpers: Helpers,
}

impl<'a> Keeper<'a> {
    /// Begins with every class that a killed predecessor left with members.
    #[must_use]
    pub fn new(classes: &'a dyn Classes) -> Self {
        let (kept, taken) = (Vec::new(), Vec::new());
        let mut keeper = Self { classes, kept, taken, helpers: Helpers::default() };
        for mapped in classes.all() {
            let wanted = mapped.class.watcher().is_wanted();
            if wanted && mapped.class.living(process::exists).next().is_some() {
                keeper.keep(mapped);
            } else {
                classes.unmap(mapped);
            }
        }
        keeper
    }

    /// Whether it watches nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.taken.is_empty()
    }

    /// Watches the class in this segment, or looks again who is in it; false when there is none.
    pub fn watch(&mut self, segment: i32) -> bool {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.mapped.segment == segment) {
            kept.watch.look_for_members();
            kept.empty_since = None;
            return true;
        }
        if self.taken.iter().any(|(mapped, _)| mapped.segment == segment) {
            return true;
        }
        let Some(mapped) = self.classes.find(segment) else { return false };
        self.keep(mapped);
        true
    }

    fn keep(&mut self, mapped: Mapped) {
        self.keep_or_wait(mapped, time::now().plus(DYING));
    }

    /// Watches the class, unless somebody else does who still lives at `deadline`: `discnice attach`
    /// watches its own.
    fn keep_or_wait(&mut self, mapped: Mapped, deadline: Nanos) {
        let now = time::now();
        if mapped.class.watcher().claim(process::id(), now.0, lives) {
            let watch = Watch::new(mapped.class, mapped.segment, self.helpers.clone());
            self.kept.push(Kept { mapped, watch, empty_since: None });
        } else if now < deadline {
            self.taken.push((mapped, deadline));
        } else {
            self.classes.unmap(mapped);
        }
    }

    /// Does what is due; returns when to be called again.
    pub fn step(&mut self) -> Nanos {
        let now = time::now();
        for (mapped, deadline) in std::mem::take(&mut self.taken) {
            self.keep_or_wait(mapped, deadline);
        }
        let mut next = now.plus(if self.taken.is_empty() { EMPTY } else { RETRY });
        for kept in &mut self.kept {
            next = next.min(kept.watch.step());
            let since = kept.empty_since.get_or_insert(now);
            if !kept.watch.is_empty() {
                *since = now;
            }
        }
        let (classes, id) = (self.classes, process::id());
        let over = |kept: &Kept| {
            let empty = kept.empty_since.is_some_and(|since| now >= since.plus(EMPTY));
            empty || !kept.mapped.class.watcher().claim(id, now.0, lives)
        };
        for done in self.kept.extract_if(.., |kept| over(kept)) {
            let mapped = done.mapped;
            drop(done.watch);
            classes.unmap(mapped);
        }
        next
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.watch.tend());
    }
}
