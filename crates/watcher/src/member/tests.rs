//! Watched processes with holds that only tell what became of them.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::process::{Command, Stdio};
use std::ptr::NonNull;
use std::rc::Rc;

use discnice_ledger::State;
use discnice_ledger::member::Charged;
use discnice_ledger::outside::Mechanism;
use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Nanos, Rate};

use super::*;
use crate::holding::{Grip, Hold, Refused};

/// Tells whether it holds. One thread can never be let go.
#[derive(Debug)]
struct Stuck(Rc<Cell<bool>>);

impl Hold for Stuck {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Ptrace
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
    class.set_limits(Moment::FIRST, &limits);
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

#[test]
fn what_children_left_that_were_not_found_yet_is_not_charged_to_an_attached_process() {
    use std::io::{BufRead, BufReader, Write};
    let script = "echo; read go; head -c 8388608 /dev/zero > file; echo; read go";
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut command = Command::new("sh");
    command.current_dir(&folder).args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    lines.next();
    let (id, class) = (shell.id(), class());
    let (slot, member) = class.register(id, Charged::default(), |_| true).unwrap();
    member.set_state(State::Outside);
    let pinned = crate::process::pin(id.cast_signed()).unwrap();
    let watched = Watched::new(pinned, class, (slot, id), Reason::Attached, Helpers::default());
    let mut watched = watched.unwrap();
    // On a busy machine the child takes longer than the moment in which it is found.
    watched.accounting.expect_unknown_children(time::now().plus(Nanos(60 * Nanos::SECOND.0)));
    shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    lines.next();
    for _ in 0..3 {
        watched.schedule.look_closely(time::now());
        watched.step(time::now(), Nanos(0)).unwrap();
    }
    let charged = member.books().charged().total();
    watched.let_go();
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(charged < 1 << 20, "{charged} bytes of a child");
}

/// The child watched in a class of its own, with a hold that tells whether it holds, and holds nothing.
fn barely_held(child: &std::process::Child) -> (Watched, Rc<Cell<bool>>) {
    let (id, class) = (child.id(), class());
    let (slot, _) = class.register(id, Charged::default(), |_| true).unwrap();
    let pinned = crate::process::pin(id.cast_signed()).unwrap();
    let watched = Watched::new(pinned, class, (slot, id), Reason::None, Helpers::default());
    let (mut watched, holds) = (watched.unwrap(), Rc::new(Cell::new(false)));
    watched.holding.replace(Box::new(Stuck(Rc::clone(&holds))));
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
    std::thread::sleep(std::time::Duration::from_nanos(until.since(now).0));
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
    let until = now.plus(Nanos(60 * Nanos::SECOND.0));
    watched.writeback.awaits_until = Some(until);
    watched.schedule.note_debt(now, until);
    watched.limits_changed();
    watched.step(now, Nanos(0)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(holds.get());
}

#[test]
fn what_is_held_for_limits_that_are_gone_is_let_go_without_being_told() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let (mut watched, holds) = barely_held(&child);
    let now = time::now();
    watched.schedule.note_debt(now, now.plus(Nanos(60 * Nanos::SECOND.0)));
    watched.step(now, Nanos(0)).unwrap();
    let held_before = holds.get();
    watched.class.set_limits(now, &Limits::UNLIMITED);
    let next = watched.step(time::now(), Nanos(0)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(held_before && !holds.get(), "looked at again in {:?}", next.since(now));
}

#[test]
fn a_process_that_could_not_be_let_go_as_a_whole_is_held_again() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let (mut watched, holds) = barely_held(&child);
    let now = time::now();
    watched.rest(now.plus(Nanos(60 * Nanos::SECOND.0)));
    watched.step(now, Nanos(0)).unwrap();
    assert!(holds.get(), "its memory");
    watched.let_go();
    assert!(!holds.get() && watched.is_letting_go());
    let held_again = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        watched.step(time::now(), Nanos(0)).unwrap();
        holds.get()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(held_again, "it is still to stand");
}
