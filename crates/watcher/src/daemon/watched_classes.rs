//! The classes that policyd watches.

#![allow(unsafe_code, reason = "classes that are watched no longer are unmapped")]

use std::os::fd::BorrowedFd;
use std::rc::Rc;

use discnice_ledger::Board;
use discnice_ledger::board::Arrivals;
use discnice_ledger::policy::Choice;
use discnice_registry::{Class, class};
use discnice_sys::block::BlockId;
use discnice_sys::{process, time};
use discnice_units::Nanos;

use crate::Helpers;
use crate::daemon::child_classes;
use crate::daemon::fleet_lease::Tenant;
use crate::daemon::memory_pressure::Pressure;
use crate::daemon::policy_program::Adviser;
use crate::daemon::server::Settings;
use crate::daemon::tuning;
use crate::daemon::watched_class::{Kept, Sum};
use crate::discovery::announcements::Announced;
use crate::discovery::census::{Census, Newcomer};
use crate::others::observer::Onlooker;
use crate::process::lives;

/// All of them.
#[derive(Debug)]
pub struct Keeper {
    /// `None` where there is none to be had: then each class is asked once a second.
    board: Option<&'static Board>,
    /// Wakes us when a member announces itself there.
    announced: Option<Announced>,
    kept: Vec<Kept>,
    /// What they came to when they were looked through last, or changed.
    sum: Sum,
    /// Classes that another process watches, and until when that may be one that is just dying.
    taken: Vec<(Class, Nanos)>,
    census: Census,
    pressure: Pressure,
    helpers: Helpers,
    onlooker: Onlooker,
    settings: Settings,
    /// Threads that ask the programs of classes.
    advisers: Vec<Adviser>,
    /// Threads that hold leases.
    tenants: Vec<Tenant>,
    /// Classes with a lease that is being given back, and that got members again meanwhile.
    awaited: Vec<BlockId>,
}

impl Keeper {
    /// Begins with every class that a killed predecessor left with members.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let board = discnice_registry::Board::find_or_create().ok().map(|found| found.board);
        let announced = board.and_then(|board| Announced::on(board).ok());
        let (kept, sum, taken) = (Vec::new(), Sum::default(), Vec::new());
        let (census, helpers) = (Census::default(), Helpers::on(board));
        let pressure = Pressure::default();
        let onlooker = Onlooker::at(board);
        let (tenants, awaited) = (Vec::new(), Vec::new());
        let mut keeper = Self {
            board,
            announced,
            kept,
            sum,
            taken,
            census,
            pressure,
            helpers,
            onlooker,
            settings,
            advisers: Vec::new(),
            tenants,
            awaited,
        };
        for mapped in class::all().unwrap_or_default() {
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
        self.kept.is_empty() && self.taken.is_empty() && self.tenants.iter().all(Tenant::is_over)
    }

    /// Watches the class in this block, or looks again for its members; false when there is none.
    pub fn watch(&mut self, block: BlockId) -> bool {
        self.pressure.hurry();
        let known = self.find_or_keep(block);
        let kept = self.kept.iter().map(|kept| kept.mapped);
        let mut mapped = kept.chain(self.taken.iter().map(|(mapped, _)| *mapped));
        let joined = mapped.any(|one| one.block == block && one.class.fleet().is_joined());
        if joined {
            self.hold_lease(block);
        }
        known
    }

    /// Has a thread hold the lease of a class that shares a budget, as long as the class has members, whichever process
    /// watches it.
    fn hold_lease(&mut self, block: BlockId) {
        self.tenants.retain(|tenant| !tenant.is_over());
        match self.tenants.iter().find(|one| one.block == block) {
            Some(tenant) if tenant.expect_members() => {}
            // Two of one node would take the lease from each other.
            Some(_) => self.awaited.push(block),
            None => {
                self.helpers.prepare();
                self.tenants.extend(Tenant::start(block, self.settings.addresses));
            }
        }
    }

    /// Has the programs asked of classes that have one, and members.
    fn ask_programs(&mut self) {
        self.advisers.retain(|adviser| !adviser.is_over());
        let is_own = |kept: &&Kept| kept.mapped.class.pace().policy == Choice::Program;
        for kept in self.kept.iter().filter(|kept| kept.watched > 0).filter(is_own) {
            let block = kept.mapped.block;
            if self.advisers.iter().all(|one| one.block != block) {
                self.helpers.prepare();
                self.advisers.extend(Adviser::start(block, self.settings.programs));
            }
        }
    }

    /// Whether there is a class in this block; it is watched then.
    fn find_or_keep(&mut self, block: BlockId) -> bool {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.mapped.block == block) {
            kept.expect_members(time::now());
            self.sum = Sum::of(&self.kept);
            self.census.hurry();
            return true;
        }
        if self.taken.iter().any(|(mapped, _)| mapped.block == block) {
            return true;
        }
        let Some(mapped) = class::attach(block) else { return false };
        self.keep(mapped);
        true
    }

    fn keep(&mut self, mapped: Class) {
        self.keep_or_wait(mapped, time::now().plus(tuning::daemon::DYING));
    }

    /// Watches the class, unless another process does that still lives at `deadline`: `discnice
    /// attach` watches its own.
    fn keep_or_wait(&mut self, mapped: Class, deadline: Nanos) {
        let now = time::now();
        if mapped.class.watcher().claim(process::id(), now.0, lives) {
            let mut kept = Kept::new(mapped, self.helpers.clone());
            kept.expect_members(now);
            self.kept.push(kept);
            self.sum = Sum::of(&self.kept);
            self.census.hurry();
            // Another policyd of this user, in another session, holds the leases of what it watches.
            if mapped.class.fleet().is_joined() {
                self.hold_lease(mapped.block);
            }
        } else if now < deadline {
            self.taken.push((mapped, deadline));
        } else {
            unmap(mapped);
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
        let arrivals = self.board.map(Board::take_arrivals).unwrap_or_default();
        if !arrivals.is_empty() {
            // Before newcomers: they wait for that, and some newcomers are their children.
            self.step_all(now, arrivals);
        }
        let newcomers = self.census.look(now, self.pace(now));
        self.meet(now, &newcomers);
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
        next.min(self.sum.due).min(pressed).min(self.census.next()).min(observed)
    }

    /// How often newcomers are looked for.
    fn pace(&self, now: Nanos) -> Nanos {
        match self.sum.watched {
            0 if self.kept.iter().any(|kept| kept.may_have_orphans(now)) => {
                tuning::discovery::ORPHANS
            }
            0 => tuning::discovery::EMPTY,
            _ if now < self.sum.lively_until || self.sum.alert => tuning::discovery::LIVELY,
            _ if self.announced.is_none() => tuning::discovery::IDLE,
            _ => self.sum.patience.clamp(tuning::discovery::IDLE, tuning::looks::DORMANT),
        }
    }

    /// Looks whether others are busy, for all classes; returns when to be called again.
    fn look_at_others(&mut self, now: Nanos) -> Nanos {
        let Self { kept, onlooker, sum, .. } = self;
        let next = onlooker.step(now, sum.watched, kept);
        for kept in kept.iter_mut().filter_map(|kept| kept.watch.take_changed().then_some(kept)) {
            (kept.due, sum.due) = (Nanos(0), Nanos(0));
        }
        next
    }

    /// Has classes stand still for their memory; returns when to be called again.
    fn regulate_memory(&mut self, now: Nanos) -> Nanos {
        if self.pressure.is_due(now) {
            // Some may have to be looked at now.
            self.sum.due = Nanos(0);
        }
        let peopled = self.kept.iter_mut().filter(|kept| kept.watched > 0);
        self.pressure.step(now, peopled.map(Kept::as_guest))
    }

    /// Looks at each class that is due, or that a process may have joined.
    fn step_all(&mut self, now: Nanos, arrivals: Arrivals) {
        let (few, watched) = (self.kept.len() <= tuning::daemon::ASKED, self.sum.watched);
        for kept in &mut self.kept {
            let announced = || arrivals.may_be_in(kept.mapped.block);
            let asked = few || now < kept.joining_until || announced();
            if now >= kept.due || asked && kept.watch.has_arrivals() {
                kept.step(now, watched, &mut self.census);
                kept.tidy(now);
            }
        }
        for done in self.kept.extract_if(.., |kept| kept.over) {
            let mapped = done.mapped;
            drop(done.watch);
            // Nothing joins the class of a child later.
            if mapped.class.parent().is_some()
                && mapped.class.living(process::exists).next().is_none()
            {
                let _ = mapped.remove();
            }
            unmap(mapped);
        }
        self.sum = Sum::of(&self.kept);
    }

    /// Gives children classes of their own, where that is wanted, and has those classes follow their parents'.
    fn settle_children(&mut self, now: Nanos) {
        let mut made = Vec::new();
        for place in 0..self.kept.len() {
            let Some(kept) = self.kept.get_mut(place) else { break };
            let (parent, children) = (kept.mapped, kept.watch.take_children());
            let (changed, mourns) = (kept.has_changed(), kept.watch.take_mourning());
            made.extend(
                children.iter().filter_map(|one| child_classes::settle(&parent, one, &self.kept)),
            );
            if !changed && !mourns {
                continue;
            }
            for child in self.kept.iter_mut().filter(|kept| child_classes::is_child(kept, &parent))
            {
                if changed {
                    child_classes::follow(&parent, &child.mapped);
                }
                child.watch.look_at_all();
                (child.due, self.sum.due) = (now, now);
            }
        }
        self.tell_of_ended();
        if !made.is_empty() {
            made.into_iter().for_each(|mapped| self.keep(mapped));
            // So that what they bear is not taken for children of their parents' class.
            self.step_all(now, Arrivals::default());
        }
    }

    /// Tells the watches of parents which children of theirs have ended in classes of their own.
    fn tell_of_ended(&mut self) {
        for place in 0..self.kept.len() {
            let Some(kept) = self.kept.get_mut(place) else { break };
            let (ended, parent) = (kept.watch.take_ended(), kept.mapped.class.parent());
            if ended.is_empty() {
                continue;
            }
            if let Some(above) = self.kept.iter_mut().find(|kept| Some(kept.mapped.block) == parent)
            {
                ended.iter().for_each(|ended| above.watch.inherit(ended));
            }
        }
    }

    /// Offers each newcomer to the classes that it may be of, parents before their children.
    fn meet(&mut self, now: Nanos, newcomers: &[Rc<Newcomer>]) {
        if let [only] = &mut self.kept[..]
            && !only.is_per_child()
        {
            // Without a look at environments that its own list answers.
            if !newcomers.is_empty() {
                only.meet(now, newcomers);
            }
            return;
        }
        for newcomer in newcomers {
            let blocks = self.helpers.classes_of(newcomer);
            let find =
                |block: &BlockId| self.kept.iter().position(|kept| kept.mapped.block == *block);
            let mut places: Vec<usize> = blocks.iter().filter_map(find).collect();
            // What children with classes of their own bear is of their groups, too.
            places.sort_by_key(|place| self.kept.get(*place).is_none_or(Kept::is_per_child));
            let mut is_taken = false;
            for place in places {
                if let Some(kept) = self.kept.get_mut(place)
                    && !(is_taken && kept.is_per_child())
                {
                    kept.meet(now, std::slice::from_ref(newcomer));
                    self.sum.due = Nanos(0);
                    is_taken |= kept.watch.has(newcomer.stat.id);
                }
            }
        }
    }

    /// What can be read when a member has announced itself, and when a process was born, while a birth may matter at once.
    pub fn descriptors(&mut self, now: Nanos) -> Vec<BorrowedFd<'_>> {
        let lively = self.pace(now) <= tuning::discovery::LIVELY;
        let births = if lively { self.census.descriptor(now) } else { None };
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

fn unmap(class: Class) {
    // SAFETY: whatever referred to it was dropped, and each class that is found has a mapping of its own.
    unsafe { class.unmap() };
}
