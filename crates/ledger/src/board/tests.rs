//! A board in memory of our own, and classes on it.

use discnice_sys::block::BlockId;
use std::alloc::{Layout, alloc_zeroed};

use crate::policy::throttle::{self, INTERVAL, RELEASE, STALE};
use crate::policy::{Limits, Resource, Resources, When};

use super::*;
use crate::layout::Class;

const DISK: u64 = 8 << 32;
const OTHER_DISK: u64 = 9 << 32;
/// Network namespaces.
const HERE: u64 = 4_026_531_840;
const ELSEWHERE: u64 = 4_026_532_208;

fn memory(length: usize) -> NonNull<u8> {
    // SAFETY: the length is not zero.
    NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(length, 4096).unwrap()) }).unwrap()
}

/// A machine with two disks, a board, and classes.
struct Machine {
    board: &'static Board,
    now: Nanos,
    disks: [Moved; 2],
}

impl Machine {
    fn new() -> Self {
        // SAFETY: fresh memory of the right size that is never freed.
        let board = unsafe { Board::create(memory(Board::SIZE), Board::SIZE) }.unwrap();
        Self { board, now: Nanos(1 << 40), disks: [Moved { inward: 1, outward: 1 }; 2] }
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
        class.note_medium(self.board.disk(DISK));
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
        if let Some(gap) = self.board.claim_observation(self.now) {
            let mut totals = Totals::new(Nanos(0));
            for (id, moved) in [(DISK, self.disks[0]), (OTHER_DISK, self.disks[1])] {
                totals.add_disk(self.board, id, true, (moved, Work::default()));
            }
            self.board.enter(self.now, gap, &totals);
        }
        class.follow(self.now, self.board);
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

/// A link of 12 MB/s, on which a class sends through full sockets and others send, too.
struct Link {
    machine: Machine,
    class: &'static Class,
    /// In the sockets.
    waiting: u64,
    moved: Moved,
}

impl Link {
    const BUFFER: u64 = 2_500_000;
    /// What the link moves between two observations.
    const MOST: u64 = 600_000;

    fn new() -> Self {
        let machine = Machine::new();
        machine.board.want_network();
        let class = machine.class(1, u64::MAX, 100);
        let limits = Limits::UNLIMITED
            .with(Resource::NetUp, Rate::per_second(1_000_000))
            .with_when(When::Busy);
        class.set_limits(machine.now, &limits);
        Self { machine, class, waiting: 0, moved: Moved { inward: 1, outward: 1 } }
    }

    /// Lets some intervals pass, in which the class sends `own` each if that fits into its sockets, and the
    /// others `others`; returns after how many the class was first held or free, as `wanted`.
    fn pass(&mut self, intervals: usize, own: u64, others: u64, wanted: bool) -> Option<usize> {
        let mut found = None;
        for interval in 0..intervals {
            let charged = own.min(Self::BUFFER - self.waiting);
            let sent = (self.waiting + charged).min(Self::MOST - others);
            self.waiting = self.waiting + charged - sent;
            self.send(sent, others);
            self.observe(charged);
            if found.is_none() && self.class.is_limited_in(Resources::NETWORK) == wanted {
                found = Some(interval);
            }
        }
        found
    }

    /// The interface sends, each segment with its headers, and gets an acknowledgement for every two.
    /// The class's segments are cut by the interface, which counts one packet and one header for many.
    fn send(&mut self, own: u64, others: u64) {
        let (headers, segment, cut) = (66, 1448, 6);
        let packets = own / (cut * segment) + others / segment;
        let passed = throttle::payload(own + others + packets * headers, packets);
        self.moved.outward = self.moved.outward.wrapping_add(passed);
        let packets = (own + others) / segment / 2;
        let passed = throttle::payload(packets * headers, packets);
        self.moved.inward = self.moved.inward.wrapping_add(passed);
    }

    fn observe(&mut self, charged: u64) {
        let (machine, class) = (&self.machine, self.class);
        class.meter(Resource::NetUp).settle(class.pace(), machine.now, 0, charged);
        machine.board.publish(class, machine.now);
        self.look(HERE, self.moved);
    }

    /// Looks at the interfaces from a process in this namespace.
    fn look(&mut self, namespace: u64, moved: Moved) {
        let (machine, class) = (&mut self.machine, self.class);
        machine.now = machine.now.plus(INTERVAL);
        let gap = machine.board.claim_observation(machine.now).expect("the last one is old");
        let mut totals = Totals::new(Nanos(0));
        totals.set_network(namespace, moved);
        machine.board.enter(machine.now, gap, &totals);
        class.follow(machine.now, machine.board);
    }
}

#[test]
fn a_process_that_starves_on_the_network_is_given_way_to() {
    let mut link = Link::new();
    assert_eq!(
        link.pass(100, 1 << 30, 0, true),
        None,
        "its own traffic, headers and sockets included"
    );
    let onset = link.pass(60, 1 << 30, 45_000, true).expect("0.9 MB/s of others'");
    assert!(onset <= 20, "within a second: {onset}");
    // The limit lets it send a little, while the others use the link.
    assert_eq!(link.pass(60, 50_000, 500_000, false), None, "held as long as they do");
    let end = link.pass(60, 50_000, 0, false).expect("free again");
    assert!((18..=40).contains(&end), "within 2 s, but not at once: {end}");
}

#[test]
fn what_waits_to_be_received_is_ones_own() {
    let mut link = Link::new();
    link.pass(2, 0, 0, true);
    let (board, class) = (link.machine.board, link.class);
    let mut waiting = 0;
    for interval in 0..200u64 {
        let taken = if interval / 20 % 2 == 0 { 600_000 } else { 100_000 };
        let taken = taken.min(waiting + 600_000);
        waiting += 600_000 - taken;
        class.meter(Resource::NetDown).settle(class.pace(), link.machine.now, 0, taken);
        board.note_arrived(class, waiting);
        link.moved.inward += 600_000;
        link.observe(0);
        assert!(!class.is_limited_in(Resources::NETWORK), "{interval}");
    }
}

#[test]
fn the_totals_of_another_network_are_no_traffic() {
    let mut link = Link::new();
    let elsewhere = Moved { inward: 1 << 40, outward: 1 << 40 };
    link.pass(2, 0, 0, true);
    for _ in 0..40 {
        assert_eq!(link.pass(1, 100_000, 0, true), None, "quiet here");
        link.look(ELSEWHERE, elsewhere);
    }
    // No further looks come from here.
    link.machine.now = link.machine.now.plus(STALE);
    for step in 0..40 {
        let moved = Moved { inward: 0, outward: step * 60_000 };
        link.look(ELSEWHERE, elsewhere.plus(moved));
    }
    assert!(link.class.is_limited_in(Resources::NETWORK), "others are busy there");
}

#[test]
fn bursts_into_sockets_are_ones_own_when_they_leave_them() {
    let mut link = Link::new();
    link.pass(2, 0, 0, true);
    for _ in 0..20 {
        assert_eq!(link.pass(1, 2_000_000, 0, true), None);
        assert_eq!(link.pass(9, 0, 0, true), None, "the link takes 200 ms for them");
    }
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
    machine.now = Nanos(1000 * Nanos::SECOND.0);
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

/// A slow disk that a class reads at full speed, and what the class's watcher sees of it.
struct Watched {
    machine: Machine,
    class: &'static Class,
    work: Work,
    /// True if the class reads.
    reads: bool,
    /// Read by the class, and not by the disk yet.
    in_flight: u64,
}

impl Watched {
    const STEP: Nanos = Nanos::from_millis(20);
    const PIECE: u64 = 1 << 20;

    fn new() -> Self {
        let machine = Machine::new();
        let class = machine.class(1, 1 << 20, 100);
        let mut watched =
            Self { machine, class, work: Work::default(), reads: false, in_flight: 0 };
        watched.pass(0, 0);
        watched.reads = true;
        watched
    }

    /// Lets a step of time pass. The class reads, unless it is held, with a piece on its way at the
    /// end; the others do `others` reads of 4 KiB; `strangers` tasks outside the class wait.
    /// Returns true if the class is held.
    fn pass(&mut self, others: u64, strangers: u64) -> bool {
        let Self { machine, class, work, .. } = self;
        machine.now = machine.now.plus(Self::STEP);
        let own = if class.is_limited() || !self.reads { 0 } else { Self::PIECE };
        let done = std::mem::replace(&mut self.in_flight, own);
        class.meter(Resource::Read).settle(class.pace(), machine.now, 0, own);
        machine.board.publish(class, machine.now);
        machine.disks[0].inward += done + others * 4096;
        let requests = done / Self::PIECE + others;
        work.requests += requests;
        work.waited = work.waited.plus(Nanos(requests * Self::STEP.0));
        work.in_flight = own / Self::PIECE + strangers;
        let claimed = machine.board.claim_observation_after(machine.now, Self::STEP);
        let gap = claimed.expect("nobody else looks");
        let mut totals = Totals::new(Nanos(0));
        totals.add_disk(machine.board, DISK, true, (machine.disks[0], *work));
        totals.set_exact(Moved::default(), 0);
        (0..strangers).for_each(|_| totals.add_stranger(machine.board, None));
        machine.board.enter(machine.now, gap, &totals);
        class.follow(machine.now, machine.board);
        class.is_limited()
    }
}

#[test]
fn a_few_small_reads_are_given_way_to_once_all_that_is_ours_is_known() {
    let mut disk = Watched::new();
    assert!((0..200).all(|_| !disk.pass(0, 0)), "alone");
    // Twenty a second, each of which waits behind a piece.
    let onset = (0..100).position(|step| disk.pass(u64::from(step % 3 == 0), 1));
    assert!(onset.is_some_and(|step| step < 2), "as soon as a stranger waits: {onset:?}");
    assert!((0..100).all(|step| disk.pass(u64::from(step % 3 == 0), 1)), "as long as they come");
    let end = (0..100).position(|_| !disk.pass(0, 0)).expect("free again");
    assert!(end <= 25, "within 500 ms: {end}");
}

#[test]
fn waiting_for_something_else_costs_next_to_nothing() {
    let mut disk = Watched::new();
    let held = (0..3000).filter(|_| disk.pass(0, 1)).count();
    assert!(
        (1..=90).contains(&held),
        "a fortieth of a minute at most, and it was believed once: {held}"
    );
}
