//! A class that sends and receives, and others on the same link.

use discnice_units::{Bytes, Nanos, Rate};

use super::Machine;
use crate::board::{MachineTotals, Moved};
use crate::layout::Class;
use crate::policy::throttle::{self, INTERVAL, STALE};
use crate::policy::{Limits, Resource, Resources, When};

/// Network namespaces.
const HERE: u64 = 4_026_531_840;
const ELSEWHERE: u64 = 4_026_532_208;

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
        let mut totals = MachineTotals::new(Nanos(0));
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
        board.note_arrived(class, Bytes::new(waiting));
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
