use super::*;
use crate::member::{Charged, Member};

fn zeroed<T>() -> Box<T> {
    use std::alloc::{Layout, alloc_zeroed};
    #[allow(unsafe_code, reason = "tests begin with zeroed memory, as the kernel gives it")]
    // SAFETY: all fields are atomic integers, for which zero is valid; the size is not zero.
    unsafe {
        Box::from_raw(alloc_zeroed(Layout::new::<T>()).cast())
    }
}

#[test]
fn one_watcher_at_a_time() {
    let watcher = zeroed::<Watcher>();
    assert_eq!(watcher.process(5, |_| true), None);
    assert!(watcher.claim(7, 5, |_| true));
    assert!(!watcher.claim(8, 6, |_| true), "7 lives");
    assert!(watcher.claim(7, 7, |_| true));
    assert_eq!(watcher.process(8, |_| true), Some(7));
    assert!(watcher.claim(8, 8, |_| false), "7 is dead");
    assert!(watcher.claim(9, 9 + PATIENCE, |_| true), "8 hangs");
    watcher.resign(8);
    assert!(!watcher.claim(8, 10 + PATIENCE, |_| true), "8 was not the watcher any more");
}

#[test]
fn a_watcher_that_shows_itself_after_the_clock_was_read_is_there() {
    let watcher = zeroed::<Watcher>();
    assert!(watcher.claim(7, 9, |_| true));
    assert_eq!(watcher.process(8, |_| true), Some(7));
    assert!(!watcher.claim(8, 8, |_| true), "7 lives");
    assert!(watcher.claim(7, 10 + PATIENCE, |_| true));
    assert_eq!(watcher.process(9, |_| true), None, "that moment was scribbled");
}

#[test]
fn births_are_followed_by_the_process_that_said_so() {
    let watcher = zeroed::<Watcher>();
    assert!(watcher.claim(7, 5, |_| true));
    assert!(!watcher.follows_births(5, |_| true));
    watcher.follow_births(true);
    assert!(watcher.follows_births(5, |_| true));
    assert!(!watcher.follows_births(5, |_| false), "it is dead");
    assert!(!watcher.follows_births(6 + PATIENCE, |_| true), "it hangs");
    assert!(watcher.claim(8, 8, |_| false));
    assert!(!watcher.follows_births(8, |_| true), "the next one has not said so");
}

#[test]
fn arrivals_are_answered_once_all_were_looked_for() {
    let watcher = zeroed::<Watcher>();
    watcher.announce();
    let first = watcher.arrivals();
    watcher.announce();
    assert!(!watcher.has_answered(first));
    watcher.answer(first);
    assert!(watcher.has_answered(first));
    assert!(!watcher.has_answered(watcher.arrivals()), "one came later");
    watcher.answer(u32::MAX);
    watcher.answer(2);
    assert!(watcher.has_answered(u32::MAX), "the number has started again");
    assert!(!watcher.has_answered(3));
}

#[test]
fn what_was_charged_from_outside_is_known_by_mechanism() {
    let watcher = zeroed::<Watcher>();
    watcher.note_charged(Some(Mechanism::Ptrace), Bytes::new(3));
    watcher.note_charged(Some(Mechanism::Seccomp), Bytes::new(5));
    // Both freeze a process.
    watcher.note_charged(Some(Mechanism::CgroupFreezer), Bytes::new(4));
    watcher.note_charged(Some(Mechanism::Preload), Bytes::new(8));
    watcher.note_charged(Some(Mechanism::Signals), Bytes::new(2));
    watcher.note_credited(Some(Mechanism::Signals), Bytes::new(9));
    let all = [None, Some(Mechanism::Ptrace), Some(Mechanism::Signals), Some(Mechanism::Seccomp)];
    assert_eq!(all.map(|one| watcher.charged(one).get()), [0, 7, 0, 5]);
}

#[test]
fn an_account_belongs_to_one_life_of_a_slot() {
    let (member, held) = (Member::new(), zeroed::<Held>());
    assert!(member.claim(7, Charged::default(), |_| false));
    assert_eq!(held.of(&member), None);
    held.begin(&member, 100);
    held.set_how(Some(Mechanism::Ptrace), Reason::RanAhead);
    held.add_escaped(Bytes::new(4096));
    held.begin(&member, 100);
    let account = held.of(&member).unwrap();
    assert_eq!((account.escaped, account.reason, account.seen), (4096, Reason::RanAhead, None));
    let before = Charged { read: 1, written: 2 };
    held.set_before(before);
    held.begin(&member, 100);
    assert_eq!(held.of(&member).unwrap().before, before);
    held.set_seen(5, 8192);
    assert_eq!(held.of(&member).unwrap().seen, Some(Seen { ran: 5, bytes: 8192 }));
    assert!(member.claim(8, Charged::default(), |_| false));
    assert_eq!(held.of(&member), None);
    held.begin(&member, 200);
    let account = held.of(&member).unwrap();
    assert_eq!((account.seen, account.before), (None, Charged::default()), "of the next life");
}
