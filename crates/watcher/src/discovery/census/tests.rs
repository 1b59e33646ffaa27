use std::process::{Child, Command};

use discnice_requirements::skip;
use discnice_sys::block::BlockId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

#[test]
fn newcomers_are_found_once() {
    let mut census = Census::default();
    let own = |found: &[Rc<Newcomer>], id: u32| found.iter().any(|one| one.stat.id == id);
    assert!(
        !own(&census.look(Moment(1), tuning::discovery::IDLE), std::process::id()),
        "it is not new"
    );
    let mut child = Command::new("sleep").arg("100").env("DISCNICE", "1f:2").spawn().unwrap();
    assert!(tree::can_be_looked_at(child.id()));
    assert!(census.look(Moment(2), tuning::discovery::IDLE).is_empty(), "it is not time yet");
    assert!(own(
        &census.look(Moment::FIRST.plus(Nanos::SECOND), tuning::discovery::IDLE),
        child.id()
    ));
    census.hurry();
    assert!(!own(
        &census.look(Moment::FIRST.plus(Nanos::SECOND), tuning::discovery::IDLE),
        child.id()
    ));
    let started = procfs::stat(std::process::id()).unwrap().started;
    assert!(own(
        &census.since(Moment::FIRST.plus(Nanos::SECOND), std::process::id(), started),
        child.id()
    ));
    assert!(
        own(&census.since(Moment::FIRST.plus(Nanos::SECOND), u32::MAX, started), child.id()),
        "of all"
    );
    std::thread::sleep(std::time::Duration::from_millis(50));
    let child_seen = Newcomer::from(procfs::stat(child.id()).unwrap());
    assert!(child_seen.carries(b"DISCNICE=1f:2") && child_seen.carries(b"DISCNICE=1f"));
    assert!(!child_seen.carries(b"DISCNICE=1"));
    assert_eq!(child_seen.blocks().collect::<Vec<_>>(), [BlockId::of_segment(0x1f)]);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A process that sleeps, when it has begun its program: until then it cannot be looked at.
fn sleeping() -> Child {
    let child = Command::new("sleep").arg("100").spawn().unwrap();
    assert!(tree::can_be_looked_at(child.id()));
    child
}

/// A census that has looked once, and a process born since.
fn with_child(births: ForkEvents) -> (Census, Child) {
    let mut census = Census { births: Some(births), ..Census::default() };
    census.look(Moment(1), tuning::discovery::LIVELY);
    (census, sleeping())
}

fn finds(census: &mut Census, child: &Child) -> bool {
    census.hurry();
    let found = census.look(Moment(2), tuning::discovery::LIVELY);
    found.iter().any(|one| one.stat.id == child.id())
}

#[test]
fn a_process_that_could_not_be_seen_yet_is_looked_at_again() {
    for births in [ForkEvents::begin(), ForkEvents::default()] {
        let (mut census, mut child) = with_child(births);
        if !census.follows_births() {
            census.missed.push(child.id());
        }
        // As if it had been in the middle of its birth at the look.
        census.last = Some(child.id());
        assert!(finds(&mut census, &child));
        assert!(!finds(&mut census, &child), "once is enough");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_late_birth_that_the_first_look_for_one_class_finds_is_new_to_all() {
    let (mut census, mut child) = with_child(ForkEvents::begin());
    if !census.follows_births() {
        skip!("the kernel tells this user of no births");
    }
    // As if it had been in the middle of its birth at the look.
    census.last = Some(child.id());
    let found = census.since(Moment(2), child.id() - 1, 0);
    assert!(found.iter().any(|one| one.stat.id == child.id()));
    assert!(finds(&mut census, &child));
    assert!(!finds(&mut census, &child), "once is enough");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ids_that_were_missed_before_the_numbers_began_anew_are_looked_at() {
    let looked_at = |missed: &[u32], last| again(missed, 300, last).collect::<Vec<_>>();
    assert_eq!(looked_at(&[299, 300, 301, 310, 311, 32_767], 310), [299, 300, 311, 32_767]);
}

#[test]
fn a_birth_that_was_told_while_others_were_looked_at_is_looked_into_at_once() {
    let (mut census, mut child) = with_child(ForkEvents::begin());
    if !census.follows_births() {
        skip!("the kernel tells this user of no births");
    }
    census.introduce(Vec::new());
    assert_ne!(census.next(), Moment::FIRST);
    census.look_again(Moment(2));
    assert_eq!(census.next(), Moment::FIRST);
    assert!(finds(&mut census, &child));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Looks until one finds that nothing was forked, which other tests do all the time.
fn still(census: &mut Census) -> Moment {
    for at in (1..2_000).map(|millis| Moment::FIRST.plus(Nanos::from_millis(millis))) {
        census.hurry();
        census.look(at, tuning::discovery::IDLE);
        if census.awaits_births {
            return at;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("something is forked all the time");
}

#[test]
fn where_births_are_told_a_look_at_a_quiet_machine_is_followed_by_one_at_the_next_birth() {
    let mut census = Census { births: Some(ForkEvents::begin()), ..Census::default() };
    if !census.follows_births() {
        skip!("the kernel tells this user of no births");
    }
    let at = still(&mut census);
    assert!(census.next() > at.plus(Nanos::from_millis(60)), "{:?}", census.next().since(at));
    let mut child = sleeping();
    let births = census.descriptor(at, false).expect("it waits for a birth");
    let timeout = Timespec { tv_sec: 5, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::from_borrowed_fd(births, PollFlags::IN)], Some(&timeout));
    assert_eq!(ready, Ok(1));
    census.hurry();
    assert!(census.descriptor(at, true).is_none(), "a look is due");
    let found = census.look(at, tuning::discovery::IDLE);
    assert!(found.iter().any(|one| one.stat.id == child.id()));
    assert!(census.descriptor(at, false).is_none(), "more may be born in a burst");
    assert!(census.next() < at.plus(Nanos::from_millis(30)), "{:?}", census.next().since(at));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ids_without_a_process_are_asked_for_once_more_where_births_are_not_told() {
    let (mut census, mut child) = with_child(ForkEvents::default());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!finds(&mut census, &child) && census.missed.contains(&child.id()));
    assert!(!finds(&mut census, &child) && !census.missed.contains(&child.id()));
}
