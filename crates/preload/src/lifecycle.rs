//! What happens to this process: it starts, becomes another program, is suspended, ends.

use discnice_ledger::outside::Reason;
use discnice_ledger::policy::Resources;
use discnice_ledger::{Class, Member, State, Token};
use discnice_sys::process;

use crate::environment::Carry;
use crate::loading::Target;
use crate::outside::{self, LibraryEntry};
use crate::thread::local;
use crate::{engine, faults, files, mappings, net};

/// This process is about to become another program, as a member of the class.
#[derive(Debug)]
pub struct Departure {
    /// What the program needs to find the class and its member.
    pub token: Token<'static>,
    /// What of that goes into its environment.
    pub carried: Carry,
    member: Option<&'static Member>,
    /// A child of vfork(2), for which the member was made.
    borrowed: bool,
}

/// Prepares to execute another program. The member says so until the program reports: one that
/// our library cannot enter never does.
///
/// What it reads to start is brought in before that, in the name of the member that it
/// will be: a child of vfork(2) has an account of its own already.
pub fn depart(target: Target) -> Option<Departure> {
    let class = engine::class()?;
    let token = engine::token()?;
    let borrowed = engine::is_borrowed();
    let (id, member) = if borrowed {
        // What is known about descriptors is the parent's too: it is left alone.
        engine::register_member(class, process::id()).unzip()
    } else {
        // A child of fork(2) that has done nothing yet has its slot only when it is asked for.
        let member = engine::member(class);
        (engine::id(), member)
    };
    target.bring_in(&engine::regulator_of(class, member));
    if !borrowed {
        let_go();
    }
    if let Some(member) = member {
        member.set_state(State::Executing);
        class.watcher().announce();
    }
    let entry = LibraryEntry::of(target);
    let known = id.zip(member).is_some_and(|(id, member)| {
        if entry.escapes() {
            outside::await_notice(class, id, member, Reason::NoLibrary);
        }
        outside::is_known(class, id, member)
    });
    let carried = entry.carry(class, known);
    Some(Departure { token: Token { member: id, ..token }, carried, member, borrowed })
}

/// This process is about to start a program as a child.
#[derive(Debug)]
pub struct Birth {
    /// What of ours the program finds in its environment.
    pub carried: Carry,
    /// The member that says so, if our library does not get into the program.
    bearing: Option<&'static Member>,
}

/// Prepares to start a program as a child. The member says so if our library does not get into that: the watcher, if it is
/// told of births, finds the child before that executes the program.
pub fn bear(target: Target) -> Birth {
    let Some(class) = engine::class() else {
        return Birth { carried: Carry::Nothing, bearing: None };
    };
    let (entry, member) = (LibraryEntry::of(target), engine::member(class));
    let bearing = member.filter(|_| entry.escapes());
    bearing.into_iter().for_each(Member::begin_bearing);
    let known = engine::id().zip(member).is_some_and(|(id, member)| {
        if bearing.is_some() {
            outside::await_bearing(class, id, member);
        }
        outside::is_known(class, id, member)
    });
    Birth { carried: entry.carry(class, known), bearing }
}

impl Birth {
    /// The program was started, or could not be.
    pub fn end(self) {
        self.bearing.into_iter().for_each(Member::end_bearing);
    }
}

impl Departure {
    /// The program could not be executed.
    pub fn failed(self) {
        match self.member {
            Some(member) if self.borrowed => member.release(),
            Some(member) => member.set_state(State::Active),
            None => {}
        }
    }
}

/// Settles what is open and gives the kernel's read-ahead back; before a program ends or is
/// replaced.
pub fn let_go() {
    let Some(regulator) = engine::regulator() else { return };
    mappings::settle_all();
    regulator.look_at_end(&local().thread);
    files::for_each_shaped(|fd, file| {
        regulator.unshape(fd, file);
        regulator.leave_cache(fd, file);
    });
    net::parked::release_all();
    net::told::take_back();
}

/// Stops regulating this process: from here on nothing of ours calls the kernel. What [`resume`]
/// needs is returned; without it the process stays listed as one that is not limited.
#[must_use]
pub fn pause() -> Option<(&'static Class, Option<&'static Member>)> {
    let class = engine::class()?;
    let_go();
    faults::give_back();
    let member = engine::member(class);
    if let Some(member) = member {
        member.set_state(State::Confined);
        class.watcher().announce();
    }
    engine::suspend();
    Some((class, member))
}

/// Waits until the watcher outside knows the process, and where it is `left` to the watcher or must be held by it at once, until
/// the watcher has noticed that it is [`pause`]d. Without the wait, the process could end before that.
pub fn await_outside(paused: Option<(&'static Class, Option<&'static Member>)>, left: bool) {
    let Some((class, Some(member))) = paused else { return };
    let Some(id) = engine::id() else { return };
    if left || class.watcher().is_strict() {
        outside::await_notice(class, id, member, Reason::Confined);
    } else {
        outside::await_known(class, id, member);
    }
}

/// Regulates the process again, but network traffic only if that is still allowed.
pub fn resume(paused: Option<(&'static Class, Option<&'static Member>)>, traffic: bool) {
    let Some((class, member)) = paused else { return };
    let escapes = !traffic && class.is_limited_in(Resources::NETWORK);
    if let Some(member) = member.filter(|_| !escapes) {
        member.set_state(State::Active);
    }
    engine::go_on(class, traffic);
}

/// The process ends. Destructors of other libraries, and libc's own flushing of streams, come
/// after this: what they cause is charged on top of what has been, without a member.
pub fn leave() {
    if engine::is_borrowed() {
        return;
    }
    let_go();
    engine::deregister();
}

/// The first thing that a new program pays: what loading it cost, and what its class owes.
pub fn arrive() {
    if let Some(regulator) = engine::regulator() {
        regulator.look(&local().thread);
        regulator.wait_for_debt();
    }
}
