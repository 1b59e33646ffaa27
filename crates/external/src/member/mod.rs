//! One process under watch.

mod charging;
mod holding;
mod told;

use discnice_budget::member::Charged;
use discnice_budget::outside::{APART, Held, Mechanism, Reason};
use discnice_budget::{Class, Member, MemberId, State};
use discnice_regulator::Backlog;
use discnice_sys::time;
use discnice_units::Nanos;

use crate::account::{Io, OwnAccount, Rest};
use crate::awaited;
use crate::duty::{self, Decision, Duty};
use crate::helpers::Helpers;
use crate::hold::{self, Hold};
use crate::nameless::Nameless;
use crate::process::{self, Pinned};
use crate::read_ahead::ReadAhead;

/// One that has just run ahead is looked at closely for so long.
const CLOSELY: Nanos = Nanos::from_millis(20);
/// Preloaded processes are looked at this often at most: they charge themselves.
const PRELOADED: Nanos = Nanos::from_millis(2);
/// Of so many looks at a process that does nothing, one finds out whether it has ended.
const GLANCES: u32 = 8;
/// Interval of looks from which on a process is first asked if it has run at all: ten ticks of the
/// slowest kernel, so that a process that runs just now is not overlooked for much longer.
const SELDOM: Nanos = Nanos::from_millis(100);
/// First hold of a process that has read before it was known: what the kernel reads ahead for it is
/// switched off then, before it is a burst.
const GREETING: Nanos = Nanos::from_millis(10);
/// Time after a process was attached in which children of its may end that ran before and are not
/// found yet: what they did in all their lives is not its own.
const MEETING: Nanos = Nanos::from_millis(100);

/// What charges the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// We do.
    Outside,
    /// Our library in it, unless it does I/O that no call shows.
    Preloaded,
}

/// Why a process is no longer watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It ended.
    Ended,
    /// It was detached, or its class removed.
    Detached,
}

/// A process under watch.
#[derive(Debug)]
pub struct Watched {
    pinned: Pinned,
    class: &'static Class,
    slot: MemberId,
    role: Role,
    reason: Reason,
    account: OwnAccount,
    cancelled: u64,
    duty: Duty,
    /// Since when it has been ahead of these books.
    suspect: Option<(Nanos, Charged)>,
    caught_until: Nanos,
    hold: Box<dyn Hold>,
    helpers: Helpers,
    read_ahead: ReadAhead,
    nameless: Nameless,
    /// Bytes dirtied since write-back was started last.
    dirtied: u64,
    /// What it has on its way to a disk while its class gives way, and until when it waits for that at the longest.
    backlog: Backlog,
    awaits_until: Nanos,
    held_since: Option<Nanos>,
    press_at: Nanos,
    /// How often it moved bytes though it was held.
    slips: u32,
    letting_go: bool,
    /// Nothing could hold it when it was to be held last.
    is_unheld: bool,
    /// Looks since the last thorough one.
    glances: u32,
    refused_until: Nanos,
    /// When way was made for a debugger last, and for how long lately.
    way_at: Nanos,
    way_used: Nanos,
    /// Until when it stands for the memory that it has.
    rests_until: Nanos,
    /// The user wants it to stand.
    paused: bool,
    /// It does so, and its class says so.
    stands: bool,
    /// The number by which its class lists it.
    number: u32,
    /// Its parent, as far as known.
    pub parent: u32,
    /// Until when children may end that are not found yet; zero for no more.
    unknown_until: Nanos,
    /// How much it had moved when that was seen to grow last, and when that was.
    seen: (u64, Nanos),
    /// When it is to be looked at next.
    pub due: Nanos,
}

impl Watched {
    /// Begins to watch the process in `slot`, where it goes by this number. `None` when it has gone, or its account is hidden.
    #[must_use]
    pub fn new(
        pinned: Pinned,
        class: &'static Class,
        (slot, number): (MemberId, u32),
        reason: Reason,
        helpers: Helpers,
    ) -> Option<Self> {
        let member = class.member(slot, number)?;
        let held = class.held(slot)?;
        held.begin(member, mark(&pinned, number));
        let before = held.of(member).map(|account| account.reason);
        // That is told anew while it lasts.
        let before = before.filter(|reason| *reason != Reason::Paused).unwrap_or(Reason::None);
        let reason = if reason == Reason::None { before } else { reason };
        let role = role(class, member.state());
        let Ok(account) = OwnAccount::open(pinned.id(), member.books().charged(), rest(role))
        else {
            held.set_how(Mechanism::None, Reason::Hidden);
            return None;
        };
        let hold = hold::best(pinned.process);
        let now = time::now();
        let cancelled = account.own().cancelled;
        let begun = role == Role::Outside && account.own().written > 0;
        let nameless = if begun { Nameless::begun(pinned.id()) } else { Nameless::default() };
        let watched = Self {
            pinned,
            class,
            slot,
            role,
            reason,
            account,
            cancelled,
            hold,
            helpers,
            read_ahead: ReadAhead::default(),
            nameless,
            dirtied: 0,
            backlog: Backlog::default(),
            awaits_until: Nanos(0),
            duty: Duty::new(now),
            suspect: None,
            caught_until: Nanos(0),
            held_since: None,
            press_at: Nanos(0),
            slips: 0,
            letting_go: false,
            is_unheld: false,
            glances: 0,
            refused_until: Nanos(0),
            way_at: Nanos(0),
            way_used: Nanos(0),
            rests_until: Nanos(0),
            paused: false,
            stands: false,
            number,
            parent: 0,
            due: Nanos(0),
            seen: (0, Nanos(0)),
            unknown_until: Nanos(0),
        };
        Some(watched.greeted(now))
    }

    /// As it is after the first look: told how it is held, and stopped if it reads already.
    fn greeted(mut self, now: Nanos) -> Self {
        self.note_how(self.reason);
        if self.reason == Reason::Attached {
            self.account.set_rest(Rest::Children);
            self.unknown_until = now.plus(MEETING);
        }
        if self.role == Role::Outside && self.read_ahead.expect(self.account.own().read) {
            self.duty.owe(now, now.plus(GREETING));
        }
        self
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pinned.id()
    }

    /// One of its descriptors, for a moment.
    pub(crate) fn borrow(&self, descriptor: i32) -> Option<std::os::fd::OwnedFd> {
        self.pinned.borrow(descriptor)
    }

    /// The number by which its class lists it: in a PID namespace of its own that is not its id.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// When it was born, in clock ticks since boot, and its id: in the order of births.
    #[must_use]
    pub fn birth(&self) -> (u64, u32) {
        (self.pinned.process.started, self.id())
    }

    /// Whether its children are ours to find: our library does not bring itself into them.
    #[must_use]
    pub fn bears_outside(&self) -> bool {
        self.role == Role::Outside
    }

    /// Returns true if its role has changed since the last look, so that another party charges it.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.member().is_some_and(|member| role(self.class, member.state()) != self.role)
    }

    /// When it moved bytes last.
    #[must_use]
    pub fn moved_at(&self) -> Nanos {
        self.duty.moved_at()
    }

    /// Its own I/O as far as known; of one that has ended, what its parent will inherit.
    #[must_use]
    pub fn account(&self) -> Io {
        self.account.own()
    }

    /// Returns true if a reaped child's I/O may already be in this process's account.
    #[must_use]
    pub fn may_be_bereaved(&self) -> bool {
        self.account.may_be_bereaved()
    }

    /// Notes that the process has a child that is watched too.
    pub fn expect_children(&mut self) {
        self.account.expect_children();
    }

    /// A child of it that was watched has ended.
    pub fn inherit(&mut self, child: Io) {
        self.account.inherit(child);
    }

    /// Frees the slot of a process that has ended, unless another life of the slot has begun. The
    /// slot is kept if the account only could not be read for a moment (the process changes its
    /// user).
    pub fn free_slot(&self) {
        if let Some(member) = self.member()
            && self.pinned.has_ended()
        {
            member.release();
        }
    }

    fn member(&self) -> Option<&'static Member> {
        self.class.member(self.slot, self.number)
    }

    fn held(&self) -> Option<&'static Held> {
        self.class.held(self.slot)
    }

    fn note_how(&mut self, reason: Reason) {
        if self.stands {
            return self.note_paused();
        }
        let mechanism = match self.role {
            Role::Outside => self.hold.mechanism(),
            Role::Preloaded if reason == Reason::RanAhead => self.hold.mechanism(),
            Role::Preloaded => Mechanism::None,
        };
        if let Some(held) = self.held() {
            held.set_how(mechanism, reason);
        }
    }

    /// Whether the process does nothing, as far as one look at its account tells: then when to look
    /// again. In a crowd most do nothing at most times.
    fn glance(&mut self, now: Nanos, crowd: Nanos) -> Option<Nanos> {
        let next = self.duty.idle(now, crowd)?;
        let state = self.member()?.state();
        let same = state != State::Free
            && self.part_in(state) == (self.role, self.reason)
            && self.paused == self.is_paused();
        let sure = same && !self.letting_go && !self.may_be_bereaved();
        if !sure || self.glances >= GLANCES {
            return None;
        }
        let preloaded = self.role == Role::Preloaded;
        if preloaded && self.class.watcher().is_strict() {
            return None;
        }
        let seldom = next >= now.plus(SELDOM);
        if seldom && self.account.has_slept() {
            return Some(next);
        }
        self.glances += 1;
        if !self.account.is_unchanged().ok()? || seldom && self.pinned.has_ended() {
            return None;
        }
        self.note_seen();
        Some(if preloaded { next.max(now.plus(PRELOADED)) } else { next })
    }

    /// Tells `status` what was seen, so that it need not look itself while the process does not run.
    fn note_seen(&self) {
        if let (Some(ran), Some(held), Some(member)) =
            (self.account.ran(), self.held(), self.member())
        {
            let (own, charged) = (self.account.own(), member.books().charged());
            held.set_seen(ran.0, own.read.max(charged.read) + own.written.max(charged.written));
        }
    }

    /// Looks at the process, charges what is new, holds it or lets it go; returns when to look again.
    /// `now` may be a moment ago.
    ///
    /// # Errors
    /// It need not be watched any more; nothing of it is held then.
    pub fn step(&mut self, now: Nanos, crowd: Nanos) -> Result<Nanos, Gone> {
        if let Some(next) = self.glance(now, crowd) {
            return Ok(next);
        }
        self.glances = 0;
        let Some(state) = self.follow() else {
            self.leave();
            return Err(if self.pinned.has_ended() { Gone::Ended } else { Gone::Detached });
        };
        self.take_part(state);
        if self.unknown_until > Nanos(0) && now > self.unknown_until {
            self.unknown_until = Nanos(0);
            self.account.set_rest(rest(self.role));
        }
        if self.account.look().is_err() || self.pinned.has_ended() {
            self.nameless.forget();
            self.charge_own();
            self.let_go();
            return Err(Gone::Ended);
        }
        let moved = match self.role {
            Role::Outside => self.charge_own(),
            Role::Preloaded => self.charge_if_ahead(),
        };
        let now = time::now();
        self.follow_written(now);
        self.follow_pause(now);
        self.see_moving(now);
        let (id, paused) = (self.id(), self.paused);
        // What is paused handles signals when it goes on, as what SIGSTOP has stopped does.
        let called = || if paused { process::is_doomed(id) } else { process::is_signalled(id) };
        let next = match self.duty.decide(now, crowd, called) {
            Decision::Hold(until) if now < self.refused_until => until.min(self.refused_until),
            Decision::Hold(until) if self.may_be_held(now) => self.press(now, until, moved),
            Decision::Hold(until) => until,
            Decision::Run(next) => self.go_on(now, next),
        };
        self.write_back();
        self.note_seen();
        if self.letting_go {
            self.let_go();
        }
        Ok(if self.letting_go {
            next.min(duty::close(now))
        } else if self.awaits_until > Nanos(0) {
            next.min(now.plus(awaited::LOOK))
        } else {
            next
        })
    }

    /// Whether anything that it can stand for is in force.
    fn may_be_held(&self, now: Nanos) -> bool {
        let waits = now < self.rests_until || now < self.awaits_until;
        self.class.is_limited() || self.paused || waits
    }

    /// Lets it run; returns when to look again, at `next` at the latest.
    fn go_on(&mut self, now: Nanos, next: Nanos) -> Nanos {
        self.let_go();
        self.read_ahead.doubt(&self.pinned, self.class, now);
        let suspected = self.suspect.is_some_and(|(since, _)| now < since.plus(CLOSELY));
        if suspected && self.caught_until < now {
            duty::close(now)
        } else if self.role == Role::Preloaded && self.caught_until < now {
            next.max(now.plus(PRELOADED))
        } else {
            next
        }
    }

    /// Finds the process's slot again when it registered anew; `None` when it is no member.
    fn follow(&mut self) -> Option<State> {
        let member = match self.member() {
            Some(member) => member,
            None => {
                let (slot, member) = self.class.listed(self.number)?;
                self.slot = slot;
                self.held()?.begin(member, mark(&self.pinned, self.number));
                self.note_how(self.reason);
                member
            }
        };
        Some(member.state()).filter(|state| *state != State::Free)
    }

    /// Returns what charges a process in this state, and why.
    fn part_in(&self, state: State) -> (Role, Reason) {
        let role = role(self.class, state);
        let reason = match (role, state) {
            (Role::Preloaded, _) if self.reason == Reason::RanAhead => Reason::RanAhead,
            (Role::Preloaded, _) => Reason::None,
            (_, State::Executing) => Reason::NoLibrary,
            (_, State::Confined) => Reason::Confined,
            _ => self.reason,
        };
        (role, reason)
    }

    fn take_part(&mut self, state: State) {
        let (role, reason) = self.part_in(state);
        if (role, reason) != (self.role, self.reason) {
            (self.role, self.reason) = (role, reason);
            self.duty.stir(time::now());
            self.account.set_rest(rest(role));
            self.note_how(reason);
        }
    }
}

/// When a process started that its class lists by this number, as it is noted there.
fn mark(pinned: &Pinned, number: u32) -> u64 {
    let apart = if number == pinned.id() { 0 } else { APART };
    pinned.process.started | apart
}

fn role(class: &Class, state: State) -> Role {
    match state {
        // It reads by calls of its own, some of which would return short counts if it were interrupted.
        State::Confined if !class.watcher().is_strict() => Role::Preloaded,
        State::Active | State::Claimed | State::Notified | State::Free => Role::Preloaded,
        State::Executing | State::Confined | State::Outside => Role::Outside,
    }
}

fn rest(role: Role) -> Rest {
    match role {
        Role::Outside => Rest::Known,
        Role::Preloaded => Rest::Children,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::{Grip, Means, Refused};
    use discnice_policy::{Limits, Resource};
    use discnice_units::Rate;
    use std::alloc::{Layout, alloc_zeroed};
    use std::cell::Cell;
    use std::process::Command;
    use std::ptr::NonNull;
    use std::rc::Rc;

    /// Tells whether it holds. One thread can never be let go.
    #[derive(Debug)]
    struct Stuck(Rc<Cell<bool>>);

    impl Hold for Stuck {
        fn means(&self) -> Means {
            Means::Ptrace
        }

        fn press(&mut self) -> Result<Grip, Refused> {
            self.0.set(true);
            Ok(Grip::Loose)
        }

        fn tend(&mut self) {}

        fn release(&mut self) -> bool {
            self.0.set(false);
            false
        }
    }

    #[allow(unsafe_code, reason = "a class lives in raw memory")]
    fn class() -> &'static Class {
        let layout = Layout::from_size_align(Class::SIZE, 4096).unwrap();
        // SAFETY: the layout's size is not zero; the memory is fresh, large enough and never freed.
        let class = unsafe {
            let start = NonNull::new(alloc_zeroed(layout)).unwrap();
            Class::create(start, layout.size(), 1, b"watched", 0).unwrap()
        };
        let limits = Limits::UNLIMITED.with(Resource::Total, Rate::per_second(1 << 20));
        class.set_limits(Nanos(0), &limits);
        class
    }

    #[test]
    fn the_first_look_tells_a_program_that_it_is_held_from_outside() {
        let (mut child, class) = (Command::new("sleep").arg("60").spawn().unwrap(), class());
        let id = child.id();
        let (slot, member) = class.register(id, Charged::default(), |_| true).unwrap();
        member.set_state(State::Executing);
        let pinned = crate::process::pin(id.cast_signed()).unwrap();
        let watched = Watched::new(pinned, class, (slot, id), Reason::None, Helpers::default());
        let stepped = watched.unwrap().step(time::now(), Nanos(0));
        let told = class.held(slot).and_then(|held| held.of(member)).map(|known| known.reason);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(stepped.is_ok() && told == Some(Reason::NoLibrary), "{told:?}: it waits for that");
    }

    /// The child watched in a class of its own, with a hold that tells whether it holds, and holds nothing.
    fn barely_held(child: &std::process::Child) -> (Watched, Rc<Cell<bool>>) {
        let (id, class) = (child.id(), class());
        let (slot, _) = class.register(id, Charged::default(), |_| true).unwrap();
        let pinned = crate::process::pin(id.cast_signed()).unwrap();
        let watched = Watched::new(pinned, class, (slot, id), Reason::None, Helpers::default());
        let (mut watched, holds) = (watched.unwrap(), Rc::new(Cell::new(false)));
        watched.hold = Box::new(Stuck(Rc::clone(&holds)));
        (watched, holds)
    }

    #[test]
    fn a_paused_process_is_told_to_stand_only_once_it_does() {
        for (script, stands) in [("exec sleep 60", true), ("while :; do :; done", false)] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            let (mut watched, holds) = barely_held(&child);
            watched.class.set_paused(true);
            watched.step(time::now(), Nanos(0)).unwrap();
            let told = watched.held().unwrap().of(watched.member().unwrap()).unwrap().reason;
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(holds.get());
            assert_eq!(told == Reason::Paused, stands, "{script}: {told:?}");
        }
    }

    #[test]
    fn what_made_way_is_paused_once_the_way_is_over() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut watched, holds) = barely_held(&child);
        let now = time::now();
        let until = watched.make_way(now).unwrap();
        watched.class.set_paused(true);
        let next = watched.step(now, Nanos(0)).unwrap();
        let held_before = holds.get();
        std::thread::sleep(std::time::Duration::from_nanos(until.minus(now).0));
        watched.step(time::now(), Nanos(0)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!held_before && next <= until, "{next:?}, {until:?}");
        assert!(holds.get());
    }

    #[test]
    fn a_change_of_the_limits_does_not_end_the_wait_for_write_back() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut watched, holds) = barely_held(&child);
        let now = time::now();
        watched.awaits_until = now.plus(Nanos(60 * Nanos::SECOND.0));
        watched.duty.owe(now, watched.awaits_until);
        watched.limits_changed();
        watched.step(now, Nanos(0)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(holds.get());
    }

    #[test]
    fn a_process_that_could_not_be_let_go_as_a_whole_is_held_again() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut watched, holds) = barely_held(&child);
        let now = time::now();
        watched.duty.owe(now, now.plus(Nanos(60 * Nanos::SECOND.0)));
        watched.step(now, Nanos(0)).unwrap();
        assert!(holds.get(), "it owes");
        watched.let_go();
        assert!(!holds.get() && watched.is_letting_go());
        let held_again = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            watched.step(time::now(), Nanos(0)).unwrap();
            holds.get()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(held_again, "it still owes");
    }
}
