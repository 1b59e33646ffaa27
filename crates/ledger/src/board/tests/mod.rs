//! A board in memory of our own, and classes on it.

mod network;
mod watched;

use discnice_sys::block::BlockId;
use discnice_units::{Bytes, Moment, Nanos};
use std::alloc::{Layout, alloc_zeroed};

use crate::policy::throttle::{INTERVAL, RELEASE, STALE};
use crate::policy::{Limits, Resource, When};

use super::*;
use crate::layout::Class;

const DISK: u64 = 8 << 32;
const OTHER_DISK: u64 = 9 << 32;

fn memory(length: usize) -> NonNull<u8> {
    // SAFETY: the length is not zero.
    NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(length, 4096).unwrap()) }).unwrap()
}

/// A machine with two disks, a board, and classes.
struct Machine {
    board: &'static Board,
    now: Moment,
    disks: [Moved; 2],
}

impl Machine {
    fn new() -> Self {
        // SAFETY: fresh memory of the right size that is never freed.
        let board = unsafe { Board::create(memory(Board::SIZE), Board::SIZE) }.unwrap();
        Self { board, now: Moment(1 << 40), disks: [Moved { inward: 1, outward: 1 }; 2] }
    }

    fn class(&self, nonce: u64, rate: u64, weight: u32) -> &'static Class {
        // SAFETY: as for the board.
        let class =
            unsafe { Class::create(memory(Class::SIZE), Class::SIZE, nonce, b"c", 1) }.unwrap();
        let limits = Limits::UNLIMITED
            .with(Resource::Total, Rate::per_second(rate))
            .with_when(When::Busy)
            .with_weight(weight);
        class.set_limits(self.now, &limits);
        class.note_medium(self.board.disk(DISK), Bytes::new(1 << 20));
        class
    }

    /// Lets time pass in which the others read so much of both disks, and `class` read `own`.
    fn pass(&mut self, class: &Class, own: u64, others: [u64; 2]) {
        self.pass_in(INTERVAL, class, own, others);
    }

    fn pass_in(&mut self, time: Nanos, class: &Class, own: u64, others: [u64; 2]) {
        self.now = self.now.plus(time);
        class.meter(Resource::Read).settle(class.pace(), self.now, 0, own);
        self.disks[0].inward += own + others[0];
        self.disks[1].inward += others[1];
        self.board.publish(class, self.now);
        self.observe();
        class.follow(self.now, self.board);
    }

    fn observe(&self) {
        if let Some(gap) = self.board.claim_observation(self.now) {
            let mut totals = MachineTotals::new(Nanos(0));
            for (id, moved) in [(DISK, self.disks[0]), (OTHER_DISK, self.disks[1])] {
                totals.add_disk(self.board, id, true, (moved, Work::default()));
            }
            self.board.enter(self.now, gap, &totals);
        }
    }
}

//= rate-windows/3.1-global
#[test]
fn only_others_on_the_same_disk_are_given_way_to() {
    let mut machine = Machine::new();
    let class = machine.class(1, 1 << 20, 100);
    for _ in 0..40 {
        machine.pass(class, 50 << 20, [0, 0]);
        assert!(!class.is_limited(), "its own traffic");
    }
    for _ in 0..40 {
        machine.pass(class, 50 << 20, [0, 50 << 20]);
        assert!(!class.is_limited(), "another disk");
    }
    let onset = (0..40).take_while(|_| {
        machine.pass(class, 50 << 20, [50 << 20, 0]);
        !class.is_limited()
    });
    assert!(onset.count() <= 2, "within 150 ms");
    assert_eq!(class.limits().rate(Resource::Total), Rate::per_second(1 << 20));
    let end = (0..80).take_while(|_| {
        machine.pass(class, 1 << 16, [0, 0]);
        class.is_limited()
    });
    assert!((18..=40).contains(&end.count()), "within 2 s, but not at once");
}

#[test]
fn members_that_wait_for_the_disk_look_seldom_and_see_the_others_all_the_same() {
    for gap in [100, 250, 600, 1500] {
        let mut machine = Machine::new();
        let class = machine.class(1, 1 << 20, 100);
        machine.pass(class, 0, [0, 0]);
        let gap = Nanos::from_millis(gap);
        let of = |rate: u64| Rate::per_second(rate).units_in(gap);
        let onset = (0..5).take_while(|_| {
            machine.pass_in(gap, class, 1 << 20, [of(40 << 20), 0]);
            !class.is_limited()
        });
        assert!(onset.count() <= 2, "{gap:?}");
        let end = (0..50).take_while(|_| {
            machine.pass_in(gap, class, 1 << 16, [0, 0]);
            class.is_limited()
        });
        assert!(gap.0 * (end.count() as u64) < 2 * RELEASE.0 + gap.0, "{gap:?}");
    }
}

#[test]
fn limits_that_are_set_while_a_member_observes_the_others_hold() {
    let mut machine = Machine::new();
    let class = machine.class(1, 1 << 20, 100);
    machine.pass(class, 0, [0, 0]);
    machine.now = machine.now.plus(INTERVAL);
    machine.observe();
    // The user, before the member has put in force what it saw.
    let always = class.limits().with_when(When::Always);
    class.set_limits(machine.now, &always);
    class.follow(machine.now, machine.board);
    assert_eq!(class.limits(), always);
    assert!(!class.yields() && class.is_limited());
    assert_eq!(class.total().rate(), Rate::per_second(1 << 20));
}

#[test]
fn classes_that_are_held_at_once_share_by_weight() {
    let mut machine = Machine::new();
    let (one, two) = (machine.class(1, 4 << 20, 100), machine.class(2, 4 << 20, 300));
    for _ in 0..20 {
        machine.pass(one, 0, [50 << 20, 0]);
        machine.board.publish(two, machine.now);
        two.follow(machine.now, machine.board);
    }
    assert_eq!(one.total().rate(), Rate::per_second(1 << 20));
    assert_eq!(two.total().rate(), Rate::per_second(3 << 20));
    assert_eq!(one.limits().rate(Resource::Total), Rate::per_second(4 << 20), "what was set");
    for _ in 0..30 {
        machine.pass(one, 0, [50 << 20, 0]);
    }
    assert_eq!(one.total().rate(), Rate::per_second(4 << 20), "the other one has no work");
}

#[test]
fn one_members_observation_is_enough() {
    let machine = Machine::new();
    let now = machine.now.plus(INTERVAL);
    assert!(machine.board.claim_observation(now).is_some());
    assert!(machine.board.claim_observation(now).is_none());
}

#[test]
fn foreign_memory_is_refused() {
    let start = memory(Board::SIZE);
    // SAFETY: the memory is as long as said and never freed.
    unsafe {
        assert_eq!(Board::adopt(start, 100).err(), Some(Foreign::Truncated));
        assert_eq!(Board::adopt(start, Board::SIZE).err(), Some(Foreign::NotAClass));
        let board = Board::create(start, Board::SIZE).unwrap();
        assert!(Board::adopt(start, Board::SIZE).is_ok());
        board.header.version.store(VERSION + 1, Ordering::Relaxed);
        let newer = Board::adopt(start, Board::SIZE);
        assert_eq!(newer.err(), Some(Foreign::OtherVersion(VERSION + 1)));
    }
}

#[test]
fn arrivals_are_told_once_and_by_group() {
    let board = Machine::new().board;
    assert_eq!(board.take_arrivals(), Arrivals::default());
    let block = BlockId::of_segment;
    board.announce(block(31));
    board.announce(block(65_536 + 7));
    let arrivals = board.take_arrivals();
    assert!(arrivals.may_be_in(block(31)) && arrivals.may_be_in(block(65_536 + 7)));
    assert!(!arrivals.may_be_in(block(32)));
    assert_eq!(board.take_arrivals(), Arrivals::default());
}

#[test]
fn a_clock_that_is_set_back_blinds_no_class() {
    let mut machine = Machine::new();
    machine.now = Moment(1000 * Nanos::SECOND.0);
    assert!(machine.board.claim_observation(machine.now).is_some());
    // A thread that was not running for a moment, which knows an older time.
    let before = machine.now.minus(Nanos(INTERVAL.0 / 2));
    assert_eq!(machine.board.claim_observation(before), None);
    let back = machine.now.minus(Nanos(900 * Nanos::SECOND.0));
    assert!(machine.board.is_due(back));
    let gap = machine.board.claim_observation(back).expect("the last one is from the future");
    assert!(gap > STALE, "nothing is known of the time between");
    assert_eq!(machine.board.claim_observation(back), None);
    assert!(machine.board.claim_observation(back.plus(INTERVAL)).is_some());
}

#[test]
fn a_slot_that_a_class_has_just_taken_is_not_taken_from_it() {
    let machine = Machine::new();
    let [first, second] = [1, 2].map(|nonce| machine.class(nonce, 1 << 20, 100));
    machine.board.publish(first, machine.now);
    let slot = &machine.board.slots[0];
    assert!(!slot.claim(second, machine.now), "found free by both at once");
    let later = machine.now.plus(Nanos(61 * Nanos::SECOND.0));
    assert!(slot.claim(second, later), "that class is gone");
}

#[test]
fn paths_of_a_disk_count_together() {
    let mut machine = Machine::new();
    let class = machine.class(1, 1 << 20, 100);
    for _ in 0..40 {
        machine.now = machine.now.plus(INTERVAL);
        machine.disks[0].inward += 50 << 20;
        machine.board.publish(class, machine.now);
        if let Some(gap) = machine.board.claim_observation(machine.now) {
            let mut totals = MachineTotals::new(Nanos(0));
            for moved in machine.disks {
                totals.add_disk(machine.board, DISK, true, (moved, Work::default()));
            }
            machine.board.enter(machine.now, gap, &totals);
        }
        class.follow(machine.now, machine.board);
    }
    assert!(class.is_limited(), "others are busy on one of two paths");
}

/// Of a class that looks at thousands of files each second, 2 KiB of journal each explained all that others wrote there.
#[test]
fn names_that_a_class_changes_explain_a_journal_and_those_it_looks_at_do_not() {
    let beside = |looked: u64, changed: u64| {
        let mut machine = Machine::new();
        let class = machine.class(1, 1 << 20, 100);
        for _ in 0..40 {
            class.meter(Resource::Metadata).settle(class.pace(), machine.now, 0, looked);
            class.note_changed_names(changed);
            machine.disks[0].outward += 1 << 20;
            machine.pass(class, 0, [0, 0]);
        }
        class.is_limited()
    };
    assert!(beside(1000, 0), "20 MB/s of others");
    assert!(!beside(1000, 600), "its own journal");
}

/// A job that had read its program on the system's disk was held for whatever used that disk, and what it moved on another
/// one was taken for that of others.
#[test]
fn a_disk_that_a_class_does_not_use_any_more_is_not_given_way_on() {
    let mut machine = Machine::new();
    let class = machine.class(1, 1 << 20, 100);
    let place = machine.board.disk(OTHER_DISK);
    class.note_medium(place, Bytes::new(1 << 20));
    let begun = machine.now;
    let mut held = Nanos(0);
    while machine.now.since(begun) < Nanos(40 * Nanos::SECOND.0) {
        class.note_medium(machine.board.disk(DISK), Bytes::new(1 << 20));
        machine.pass(class, 50 << 20, [0, 400 << 20]);
        if class.is_limited() {
            held = machine.now.since(begun);
        }
    }
    assert!((15..25).contains(&(held.0 / Nanos::SECOND.0)), "{held}");
}
