//! Which classes are abandoned: no process uses them, and none has for some time.

use std::time::Duration;

use discnice_ledger::outside::Account;
use discnice_ledger::{Class, State};
use discnice_sys::{process, procfs};

use crate::store::now;

/// An automatic class that no process has used for this long is removed. Long enough for a slow disk
/// to load a program: while a class's only process executes one, nothing has it mapped.
const ABANDONED: Duration = Duration::from_secs(60);
/// Shorter time after which an automatic class is removed, when so many classes exist that the
/// system's limit comes near.
const ABANDONED_IN_CROWD: Duration = Duration::from_secs(5);

/// Returns true if what no process has used since then, which may be any number, is abandoned.
pub(crate) fn is_abandoned(since: u64, crowded: bool) -> bool {
    let patience = if crowded { ABANDONED_IN_CROWD } else { ABANDONED };
    now() > since.saturating_add(patience.as_secs())
}

/// Whether a process is a member that need not have the class mapped: it executes a program, or it is held from outside by a
/// daemon that may have been killed. Any member will do where it is unknown if the class is `mapped`.
pub(crate) fn is_in_use(class: &Class, mapped: Option<bool>) -> bool {
    class.living_slots(process::exists).any(|(slot, member)| {
        let may_be_unmapped = !matches!(member.state(), State::Active | State::Claimed);
        let known = class.held(slot).and_then(|held| held.of(member));
        // A later process may have its number.
        let is_it =
            |known: Account| known.is_apart() || procfs::is_same(member.process(), known.started);
        mapped.is_none() || may_be_unmapped && known.is_none_or(is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_ledger::member::Charged;

    #[test]
    fn what_was_used_in_the_future_is_not_abandoned() {
        assert!(is_abandoned(0, false) && !is_abandoned(now(), true));
        assert!(!is_abandoned(u64::MAX, true), "the time lies in memory that may be overwritten");
    }

    #[test]
    fn a_class_is_in_use_while_a_member_that_is_held_from_outside_lives() {
        let name = format!("@test-in-use-{}", std::process::id());
        let (made, _) = crate::classes::find_or_create(&name).unwrap();
        let class = made.class;
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (slot, member) =
            class.register(child.id(), Charged::default(), process::exists).unwrap();
        assert!(!is_in_use(class, Some(false)), "our library would have it mapped");
        assert!(is_in_use(class, None));
        while procfs::is_executing(child.id()) {}
        let started = procfs::stat(child.id()).unwrap().started;
        class.held(slot).unwrap().begin(member, started);
        member.set_state(State::Outside);
        assert!(is_in_use(class, Some(false)), "the daemon that held it was killed");
        class.held(slot).unwrap().begin(member, started + 1);
        assert!(!is_in_use(class, Some(false)), "another process of its number");
        member.set_state(State::Executing);
        class.held(slot).unwrap().begin(member, started);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_in_use(class, Some(false)), "it has ended");
        made.remove().unwrap();
    }
}
