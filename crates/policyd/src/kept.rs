//! The classes that policyd watches.

use std::fmt;
use std::rc::Rc;

use discnice_budget::Class;
use discnice_external::census::{self, Census, Newcomer};
use discnice_external::process::lives;
use discnice_external::{Helpers, Watch};
use discnice_policy::memory::Regulation;
use discnice_sys::{process, time};
use discnice_units::Nanos;

use crate::memory::{Guest, Pressure};

/// An empty class is kept for so long: its next member may be on the way.
const EMPTY: Nanos = Nanos(Nanos::SECOND.0);
/// Each class is looked at this often at least: its watcher must show himself.
const SHOW: Nanos = Nanos(Nanos::SECOND.0);
/// What is seldom touched of a class is taken out of memory this often: of a thousand classes each page counts.
const TIDY: Nanos = Nanos(10 * Nanos::SECOND.0);
/// What is not urgent is done at multiples of this, for all classes at once: to wake up costs more.
const BEAT: Nanos = Nanos::from_millis(10);
/// One that was killed is believed to live for a moment; its classes are asked for again.
const DYING: Nanos = Nanos(Nanos::SECOND.0);
const RETRY: Nanos = Nanos::from_millis(20);

/// At one step so many classes are asked whether anybody has joined them, the others at the next: each lies in pages
/// of its own, and of a thousand most are in no cache.
const ASKED: usize = 20;
/// One of whose members somebody was just born is asked at each step for so long: until then he has joined it, or
/// begun to execute a program.
const JOINING: Nanos = Nanos::from_millis(250);

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
    /// Takes what was touched of a class out of this process's memory, until it is touched again.
    fn let_pages_go(&self, class: Mapped);
    /// Unmaps a class; nobody uses it any more.
    fn unmap(&self, class: Mapped);
}

/// One class.
#[derive(Debug)]
struct Kept {
    mapped: Mapped,
    /// Elsewhere in memory, so that what is looked at again and again for each class lies together.
    watch: Box<Watch>,
    /// Whether it stands for its memory.
    memory: Regulation,
    /// When to look at it next.
    due: Nanos,
    /// Until when its members are likely to have children that only the census finds.
    lively_until: Nanos,
    /// Until when somebody who was just born is likely to join it.
    joining_until: Nanos,
    /// Whether anybody in it is held.
    holds: bool,
    /// Since when nobody is in it.
    empty_since: Option<Nanos>,
    /// How many are in it.
    watched: usize,
    /// When its pages are let go next.
    tidy_at: Nanos,
    /// It need not, or cannot, be watched any more.
    over: bool,
}

impl Kept {
    /// Begins to watch the class.
    fn new(mapped: Mapped, helpers: Helpers) -> Self {
        let watch = Box::new(Watch::new(mapped.class, mapped.segment, helpers));
        let (due, lively_until, joining_until) = (Nanos(0), Nanos(0), Nanos(0));
        let (holds, empty_since, watched, over) = (false, None, 0, false);
        let memory = Regulation::default();
        let tidy_at = time::now().plus(TIDY);
        Self {
            mapped,
            watch,
            memory,
            due,
            lively_until,
            joining_until,
            holds,
            empty_since,
            watched,
            tidy_at,
            over,
        }
    }

    /// Somebody has joined it, or is about to.
    fn expect_members(&mut self, now: Nanos) {
        self.watch.look_for_members();
        (self.due, self.empty_since) = (Nanos(0), None);
        (self.watched, self.lively_until) = (self.watched.max(1), now.plus(census::IDLE));
        self.joining_until = now.plus(JOINING);
    }

    /// The class as far as its memory goes.
    fn as_guest(&mut self) -> Guest<'_> {
        let Self { mapped, watch, memory, due, .. } = self;
        Guest { class: mapped.class, watch, regulation: memory, due }
    }

    /// Whoever of them has become a member is looked at now.
    fn meet(&mut self, now: Nanos, newcomers: &[Rc<Newcomer>]) {
        self.joining_until = now.plus(JOINING);
        if self.watch.meet(newcomers) {
            self.due = Nanos(0);
        }
    }

    /// Whether its last member ended so lately that children of it may not have been found yet.
    fn may_have_orphans(&self, now: Nanos) -> bool {
        self.empty_since.is_none_or(|since| now < since.plus(census::ORPHANS))
    }

    /// Lets go of pages that nobody has touched for a while, with all others.
    fn tidy(&mut self, now: Nanos, classes: &dyn Classes) {
        if now >= self.tidy_at && !self.holds {
            self.tidy_at = now.plus(TIDY);
            classes.let_pages_go(self.mapped);
        }
    }

    /// Does what is due, of so many processes that are watched in all.
    fn step(&mut self, now: Nanos, watched: usize, census: &mut Census) {
        let due = self.watch.step(watched, census).min(now.plus(SHOW));
        self.lively_until = self.watch.lively_until();
        self.holds = self.watch.holds();
        let urgent = self.holds || due < now.plus(BEAT);
        self.due = if urgent { due } else { Nanos(due.0.div_ceil(BEAT.0) * BEAT.0) };
        self.watched = self.watch.len();
        let since = self.empty_since.get_or_insert(now);
        if !self.watch.is_empty() {
            *since = now;
        }
        let taken = !self.mapped.class.watcher().claim(process::id(), now.0, lives);
        self.over = taken || now >= since.plus(EMPTY);
    }
}

/// All of them.
#[derive(Debug)]
pub struct Keeper<'a> {
    classes: &'a dyn Classes,
    kept: Vec<Kept>,
    /// Classes that somebody else watches, and until when that may be one who is just dying.
    taken: Vec<(Mapped, Nanos)>,
    /// How many steps were made: whose turn it is to be asked.
    steps: usize,
    census: Census,
    pressure: Pressure,
    helpers: Helpers,
}

impl<'a> Keeper<'a> {
    /// Begins with every class that a killed predecessor left with members.
    #[must_use]
    pub fn new(classes: &'a dyn Classes) -> Self {
        let (kept, taken, steps) = (Vec::new(), Vec::new(), 0);
        let (census, helpers) = (Census::default(), Helpers::default());
        let pressure = Pressure::default();
        let mut keeper = Self { classes, kept, taken, steps, census, pressure, helpers };
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
        self.pressure.hurry();
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.mapped.segment == segment) {
            kept.expect_members(time::now());
            self.census.hurry();
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
            let mut kept = Kept::new(mapped, self.helpers.clone());
            kept.expect_members(now);
            self.kept.push(kept);
            self.census.hurry();
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
        if self.is_empty() {
            return Nanos(u64::MAX);
        }
        let mut next = now.plus(if self.taken.is_empty() { SHOW } else { RETRY });
        if self.kept.is_empty() {
            return next;
        }
        let lively = self.kept.iter().any(|kept| now < kept.lively_until);
        let watched = self.kept.iter().map(|kept| kept.watched).sum();
        let newcomers = self.census.look(
            now,
            match watched {
                0 if self.kept.iter().any(|kept| kept.may_have_orphans(now)) => census::ORPHANS,
                0 => census::EMPTY,
                _ if lively => census::LIVELY,
                _ => census::IDLE,
            },
        );
        let peopled = self.kept.iter_mut().filter(|kept| kept.watched > 0);
        next = next.min(self.pressure.step(now, peopled.map(Kept::as_guest)));
        self.meet(now, &newcomers);
        self.steps += 1;
        let turns = self.kept.len().div_ceil(ASKED);
        for (index, kept) in self.kept.iter_mut().enumerate() {
            let asked = (index + self.steps).is_multiple_of(turns) || now < kept.joining_until;
            if now >= kept.due || asked && kept.watch.has_arrivals() {
                kept.step(now, watched, &mut self.census);
                kept.tidy(now, self.classes);
            }
            next = next.min(kept.due);
        }
        for done in self.kept.extract_if(.., |kept| kept.over) {
            let mapped = done.mapped;
            drop(done.watch);
            self.classes.unmap(mapped);
        }
        next.min(self.census.next())
    }

    /// Each newcomer is offered to the classes that he may be of, parents before their children.
    fn meet(&mut self, now: Nanos, newcomers: &[Rc<Newcomer>]) {
        if let [only] = &mut self.kept[..] {
            // Without a look at environments that its own list answers.
            if !newcomers.is_empty() {
                only.meet(now, newcomers);
            }
            return;
        }
        for newcomer in newcomers {
            for segment in self.helpers.classes_of(newcomer) {
                let mut kept = self.kept.iter_mut();
                if let Some(kept) = kept.find(|kept| kept.mapped.segment == segment) {
                    kept.meet(now, std::slice::from_ref(newcomer));
                }
            }
        }
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        self.kept.iter_mut().filter(|kept| kept.holds).for_each(|kept| kept.watch.tend());
    }
}
