//! The classes that policyd watches.

#![allow(unsafe_code, reason = "classes that are watched no longer are unmapped")]

mod children;
mod taking;
#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;

use discnice_ledger::Board;
use discnice_ledger::board::Arrivals;
use discnice_registry::{MappedClass, classes};
use discnice_sys::block::BlockId;
use discnice_sys::{deadline, process, time};
use discnice_units::{Moment, Nanos};

use crate::Helpers;
use crate::daemon::fleet_lease::LeaseHolder;
use crate::daemon::memory_pressure::Pressure;
use crate::daemon::policy_program::Adviser;
use crate::daemon::settings::DaemonSettings;
use crate::daemon::tuning;
use crate::daemon::watched_class::{Sum, WatchedClass};
use crate::discovery::announcements::Announced;
use crate::discovery::census::Census;
use crate::others::observer::Observer;

/// All of them.
#[derive(Debug)]
pub struct WatchedClasses {
    /// `None` where there is none to be had: then each class is asked once a second.
    board: Option<&'static Board>,
    /// Wakes us when a member announces itself there.
    announced: Option<Announced>,
    kept: Vec<WatchedClass>,
    /// What they came to when they were looked through last, or changed.
    sum: Sum,
    /// Classes that another process watches, and until when that may be one that is just dying.
    taken: Vec<(MappedClass, Moment)>,
    census: Census,
    pressure: Pressure,
    helpers: Helpers,
    observer: Observer,
    settings: DaemonSettings,
    /// Threads that ask the programs of classes.
    advisers: Vec<Adviser>,
    /// Threads that hold leases.
    tenants: Vec<LeaseHolder>,
    /// Classes with a lease that is being given back, and that got members again meanwhile.
    awaited: Vec<BlockId>,
    /// When the classes of children are compared with their parents' next.
    compare_at: Moment,
}

impl WatchedClasses {
    /// Begins with every class that a killed predecessor left with members.
    #[must_use]
    pub fn new(settings: DaemonSettings) -> Self {
        let board = discnice_registry::MappedBoard::find_or_create().ok().map(|found| found.board);
        let announced = board.and_then(|board| Announced::on(board).ok());
        let (kept, sum, taken) = (Vec::new(), Sum::default(), Vec::new());
        let (census, helpers) = (Census::default(), Helpers::on(board));
        let pressure = Pressure::default();
        let observer = Observer::at(board);
        let (tenants, awaited, compare_at) = (Vec::new(), Vec::new(), Moment::FIRST);
        let mut keeper = Self {
            board,
            announced,
            kept,
            sum,
            taken,
            census,
            pressure,
            helpers,
            observer,
            settings,
            advisers: Vec::new(),
            tenants,
            awaited,
            compare_at,
        };
        for mapped in classes::all().unwrap_or_default() {
            let wanted = mapped.class.watcher().is_wanted();
            if wanted && mapped.class.living(process::exists).next().is_some() {
                keeper.keep(mapped);
            } else {
                unmap(mapped);
            }
        }
        keeper
    }

    /// Whether it watches nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
            && self.taken.is_empty()
            && self.tenants.iter().all(LeaseHolder::is_over)
    }

    /// Does what is due; returns when to be called again.
    pub fn step(&mut self) -> Moment {
        let now = time::now();
        // Whatever else there is to do: what waits for an announcement is woken until it is taken.
        let arrivals = self.board.map(Board::take_arrivals).unwrap_or_default();
        for (mapped, deadline) in std::mem::take(&mut self.taken) {
            self.keep_or_wait(mapped, deadline);
        }
        if self.is_empty() {
            return Moment::NEVER;
        }
        for block in std::mem::take(&mut self.awaited) {
            self.hold_lease(block);
        }
        let next = now.plus(if self.taken.is_empty() {
            tuning::daemon::SHOW
        } else {
            tuning::daemon::CLAIM_RETRY
        });
        if self.kept.is_empty() {
            return next;
        }
        // A process may begin to execute a program at the very moment at which it is looked at.
        deadline::arm();
        let due = self.look(now, arrivals);
        if !self.holds() {
            deadline::disarm();
        }
        next.min(due)
    }

    /// Looks at what is due; returns when to do so again.
    fn look(&mut self, now: Moment, arrivals: Arrivals) -> Moment {
        if !arrivals.is_empty() {
            // Before newcomers: they wait for that, and some newcomers are their children.
            self.step_all(now, arrivals);
        }
        let newcomers = self.census.look(now, self.pace(now));
        self.meet(now, &newcomers);
        self.census.put_off(now, &newcomers);
        let pressed = self.regulate_memory(now);
        if self.census.named().next().is_some() {
            self.kept.iter_mut().for_each(|kept| kept.due = now);
            self.sum.due = now;
        }
        let is_quiet = now < self.sum.due && now >= self.sum.joining_until;
        if !is_quiet || self.kept.len() <= tuning::daemon::ASKED {
            self.step_all(now, Arrivals::default());
        }
        self.settle_children(now);
        self.ask_programs();
        let observed = self.look_at_others(now);
        if self.is_lively(now) {
            self.census.look_again(now);
        }
        let never = Moment::NEVER;
        let asked = self.announced.as_ref().map_or(now.plus(tuning::discovery::IDLE), |_| never);
        asked.min(self.sum.due).min(pressed).min(self.census.next()).min(observed)
    }

    /// How often newcomers are looked for.
    fn pace(&self, now: Moment) -> Nanos {
        match self.sum.watched {
            0 if self.kept.iter().any(|kept| kept.may_have_orphans(now)) => {
                tuning::discovery::ORPHANS
            }
            0 => tuning::discovery::EMPTY,
            _ if now < self.sum.lively_until || self.sum.alert => tuning::discovery::LIVELY,
            _ => self.sum.patience.clamp(tuning::discovery::IDLE, tuning::looks::DORMANT),
        }
    }

    /// Whether a birth may matter at once.
    fn is_lively(&self, now: Moment) -> bool {
        self.pace(now) <= tuning::discovery::LIVELY
    }

    /// Looks whether others are busy, for all classes; returns when to be called again.
    fn look_at_others(&mut self, now: Moment) -> Moment {
        let Self { kept, observer, sum, .. } = self;
        let next = observer.step(now, sum.watched, kept);
        for kept in kept.iter_mut().filter_map(|kept| kept.watch.take_changed().then_some(kept)) {
            (kept.due, sum.due) = (Moment::FIRST, Moment::FIRST);
        }
        // Members were looked at, class after class.
        self.hurry_children_of_bereaved(now);
        next
    }

    /// Has classes stand still for their memory; returns when to be called again.
    fn regulate_memory(&mut self, now: Moment) -> Moment {
        if self.pressure.is_due(now) {
            // Some may have to be looked at now.
            self.sum.due = Moment::FIRST;
        }
        let peopled = self.kept.iter_mut().filter(|kept| kept.watched > 0);
        self.pressure.step(now, peopled.map(WatchedClass::as_guest))
    }

    /// Looks at each class that is due, or that a process may have joined.
    fn step_all(&mut self, now: Moment, arrivals: Arrivals) {
        // Of children that have ended their parents are told before these are charged for what came from none that is known,
        // however long ago they were found to have waited for one, and however soon they are looked at again.
        self.step_children(now, arrivals);
        self.step_some(now, arrivals, |kept| kept.child_of.is_none());
        if self.hurry_children_of_bereaved(now) {
            self.step_children(now, Arrivals::default());
        }
        let parents: Vec<BlockId> = self.kept.iter().filter_map(|kept| kept.child_of).collect();
        let is_over = |kept: &mut WatchedClass| {
            let block = kept.mapped.block;
            kept.is_over(|| parents.contains(&block))
        };
        for done in self.kept.extract_if(.., is_over) {
            let mapped = done.mapped;
            drop(done.watch);
            // Nothing joins the class of a child later.
            if done.child_of.is_some() && mapped.class.living(process::exists).next().is_none() {
                let _ = mapped.remove();
            }
            unmap(mapped);
        }
        self.sum = Sum::of(&self.kept);
    }

    /// Looks at the classes of children, as [`Self::step_all`], and tells the classes of their parents which have ended.
    fn step_children(&mut self, now: Moment, arrivals: Arrivals) {
        self.step_some(now, arrivals, |kept| kept.child_of.is_some());
        self.tell_of_ended();
    }

    /// Looks at each of these classes that is due, or that a process may have joined.
    fn step_some(
        &mut self,
        now: Moment,
        arrivals: Arrivals,
        is_one: impl Fn(&WatchedClass) -> bool,
    ) {
        let (few, watched) = (self.kept.len() <= tuning::daemon::ASKED, self.sum.watched);
        for kept in self.kept.iter_mut().filter(|kept| is_one(kept)) {
            let announced = || arrivals.may_be_in(kept.mapped.block);
            let asked = few || now < kept.joining_until || announced();
            if now >= kept.due || asked && kept.watch.has_arrivals() {
                deadline::renew();
                kept.step(now, watched, &mut self.census);
                kept.tidy(now);
            }
        }
    }

    /// What can be read when a member has announced itself, and when a process was born, while looks for it wait for that.
    pub fn descriptors(&mut self, now: Moment) -> Vec<BorrowedFd<'_>> {
        let is_lively = self.is_lively(now);
        let births = self.census.descriptor(now, is_lively);
        self.announced.as_ref().map(Announced::descriptor).into_iter().chain(births).collect()
    }

    /// Notes that one of [`Self::descriptors`] can be read: newcomers are looked for at the next step.
    pub fn hurry(&mut self) {
        self.census.hurry();
        if let Some(announced) = &mut self.announced {
            announced.take();
        }
    }

    /// Returns true if any process is held, or not wholly let go.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.sum.holds || self.kept.iter().any(|kept| kept.watch.holds())
    }

    /// Held threads stopped, or ended.
    pub fn tend(&mut self) {
        if self.sum.holds {
            self.kept.iter_mut().filter(|kept| kept.holds).for_each(|kept| kept.watch.tend());
        }
    }
}

fn unmap(class: MappedClass) {
    // SAFETY: whatever referred to it was dropped, and each class that is found has a mapping of its own.
    unsafe { class.unmap() };
}
