//! What the library leaves to whoever watches the class from outside (docs/adr/0013-freeze.md).

use core::sync::atomic::AtomicU32;

use discnice_budget::outside::Reason;
use discnice_budget::{Class, Member, MemberId};
use discnice_sys::{futex, time};
use discnice_units::Nanos;

use crate::engine;
use crate::loading::Target;

/// A watcher that is awake notices within this.
const PATIENCE: Nanos = Nanos::from_millis(20);
/// How often is looked whether it has.
const LOOK: Nanos = Nanos(200_000);

/// Waits until the watcher has noticed that `member` is about to become a program that our library cannot
/// enter. Whoever only copies a file would have done that before, at full speed.
pub fn await_watcher(class: &'static Class, id: MemberId, member: &Member, target: Target) {
    if target.is_foreign() {
        await_notice(class, id, member, Reason::NoLibrary);
    }
}

/// Waits until the watcher, if there is one, has noticed `member` for this reason.
pub fn await_notice(class: &'static Class, id: MemberId, member: &Member, reason: Reason) {
    if !class.is_limited() {
        return;
    }
    engine::announce(class);
    let deadline = time::now().plus(PATIENCE);
    loop {
        let now = time::now();
        let watcher = class.watcher();
        let coming = watcher.is_coming(now.0);
        // One that has shown itself lately: a PID namespace of our own may know it by no number.
        let here = watcher.process(now.0, |_| true).is_some();
        if !coming && (!here || now >= deadline) || is_noticed(class, id, member, reason) {
            return;
        }
        // Nobody wakes us.
        let _ = futex::wait(&AtomicU32::new(0), 0, now.plus(LOOK));
    }
}

fn is_noticed(class: &Class, id: MemberId, member: &Member, reason: Reason) -> bool {
    let known = class.held(id).and_then(|held| held.of(member));
    known.is_some_and(|account| account.reason == reason)
}
