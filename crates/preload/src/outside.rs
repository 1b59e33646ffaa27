//! What the library leaves to the watcher outside the process (docs/holding.md).

use core::sync::atomic::AtomicU32;

use discnice_ledger::outside::Reason;
use discnice_ledger::{Class, Member, MemberId};
use discnice_regulator::startup::ProgramKind;
use discnice_sys::{futex, time};
use discnice_units::Nanos;

use crate::environment::Carry;
use crate::loading::Target;
use crate::{engine, environment};

/// A watcher that gets the processor notices within this.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// A watcher that has not looked since gets no processor, and is waited for this long.
const STARVED: Nanos = Nanos::from_millis(1_000);
/// How often is looked whether it has.
const LOOK: Nanos = Nanos(200_000);

/// Says if our library gets into a program that is about to be executed.
#[derive(Debug, Clone, Copy)]
pub struct LibraryEntry {
    kind: ProgramKind,
    /// Set if the dynamic linker will find the library.
    reachable: bool,
}

impl LibraryEntry {
    /// Looks at the program, and for the library.
    pub fn of(target: Target) -> Self {
        Self { kind: target.kind(), reachable: environment::is_reachable() }
    }

    /// Returns true if the program is left for the watcher to hold.
    pub fn escapes(self) -> bool {
        match self.kind {
            ProgramKind::Static
            | ProgramKind::Go
            | ProgramKind::OtherLinker
            | ProgramKind::OtherMachine => true,
            ProgramKind::Dynamic => !self.reachable,
            // The one cannot be held at all, and the other will most likely not be executed.
            ProgramKind::Privileged | ProgramKind::Unknown => false,
        }
    }

    /// What of ours the program finds in its environment. One that the library does not enter needs nothing where its
    /// descendants are found without that: where the watcher is told of births, and `known` that it knows this process.
    pub fn carry(self, class: &Class, known: bool) -> Carry {
        match self.kind {
            ProgramKind::Dynamic | ProgramKind::Unknown if self.reachable => Carry::Library,
            _ if known && class.watcher().follows_births(time::now().0, |_| true) => Carry::Nothing,
            // Dynamic programs that it starts can still be entered, if it hands that on.
            ProgramKind::Static | ProgramKind::Go if self.reachable => Carry::Library,
            _ => Carry::Class,
        }
    }
}

/// Returns true if the watcher, or one before it, knows this process and can hold it.
pub fn is_known(class: &Class, id: MemberId, member: &Member) -> bool {
    let known = class.held(id).and_then(|held| held.of(member));
    known.is_some_and(|account| account.reason != Reason::Hidden)
}

/// Waits until the watcher, if there is one, knows this process: it finds children by their parents.
pub fn await_known(class: &'static Class, id: MemberId, member: &Member) {
    wait_for(class, || is_known(class, id, member));
}

/// Waits until the watcher, if there is one, knows this process, and that it [is bearing](Member::is_bearing): it finds
/// children by their parents.
pub fn await_bearing(class: &'static Class, id: MemberId, member: &Member) {
    let watcher = class.watcher();
    watcher.announce();
    let announced = watcher.arrivals();
    wait_for(class, || watcher.has_answered(announced) && is_known(class, id, member));
}

/// Waits until the watcher, if there is one, has noticed `member` for this reason, as that it is about to become a
/// program that our library cannot enter: one that only copies a file would have done that before, at full speed.
pub fn await_notice(class: &'static Class, id: MemberId, member: &Member, reason: Reason) {
    wait_for(class, || is_noticed(class, id, member, reason));
}

fn wait_for(class: &'static Class, is_done: impl Fn() -> bool) {
    if !class.is_limited() {
        return;
    }
    let watcher = class.watcher();
    let announced = watcher.arrivals();
    engine::announce(class);
    let begun = time::now();
    loop {
        let now = time::now();
        let coming = watcher.is_coming(now.0);
        // One that has shown itself lately: a PID namespace of our own may know it by no number.
        let here = watcher.process(now.0, |_| true).is_some();
        let patience = if watcher.has_answered(announced) { PATIENCE } else { STARVED };
        if !coming && (!here || now >= begun.plus(patience)) || is_done() {
            return;
        }
        // No wake-up comes; the time-out ends each wait.
        let _ = futex::wait(&AtomicU32::new(0), 0, now.plus(LOOK));
    }
}

fn is_noticed(class: &Class, id: MemberId, member: &Member, reason: Reason) -> bool {
    let known = class.held(id).and_then(|held| held.of(member));
    known.is_some_and(|account| account.reason == reason)
}
