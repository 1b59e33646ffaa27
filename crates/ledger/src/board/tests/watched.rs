//! A disk on which all that is the class's is known, because its watcher looks.

use discnice_units::Nanos;

use super::{DISK, Machine};
use crate::board::{MachineTotals, Moved, Work};
use crate::layout::Class;
use crate::policy::Resource;

/// A slow disk that a class reads at full speed, and what the class's watcher sees of it.
struct Watched {
    machine: Machine,
    class: &'static Class,
    work: Work,
    /// True if the class reads.
    reads: bool,
    /// Read by the class, and not by the disk yet.
    in_flight: u64,
    /// True if the disk serves the others first.
    starved: bool,
}

impl Watched {
    const STEP: Nanos = Nanos::from_millis(20);
    const PIECE: u64 = 1 << 20;

    fn new() -> Self {
        let machine = Machine::new();
        let class = machine.class(1, 1 << 20, 100);
        let mut watched = Self {
            machine,
            class,
            work: Work::default(),
            reads: false,
            in_flight: 0,
            starved: false,
        };
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
        let done = if self.starved { 0 } else { std::mem::take(&mut self.in_flight) };
        self.in_flight += own;
        class.meter(Resource::Read).settle(class.pace(), machine.now, 0, own);
        machine.board.publish(class, machine.now);
        machine.disks[0].inward += done + others * 4096;
        let size = if work.largest == 0 { Self::PIECE } else { work.largest };
        let requests = done / size + others;
        work.requests += requests;
        work.waited = work.waited.plus(Nanos(requests * Self::STEP.0));
        work.in_flight = self.in_flight / size + strangers;
        let claimed = machine.board.claim_observation_after(machine.now, Self::STEP);
        let gap = claimed.expect("no other process looks");
        let mut totals = MachineTotals::new(Nanos(0));
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

#[test]
fn what_was_charged_and_never_comes_hides_no_more_than_the_disk_can_have_in_hand() {
    let onset = |largest: u64| {
        let mut disk = Watched::new();
        disk.work.largest = largest;
        // It was in the cache after all.
        disk.class.meter(Resource::Read).settle(disk.class.pace(), disk.machine.now, 0, 64 << 20);
        assert!((0..50).all(|_| !disk.pass(0, 0)), "alone");
        (0..100).position(|_| disk.pass(16, 0)).expect("others are seen")
    };
    // In steps of 64 KiB.
    let (unknown, small) = (onset(0), onset(128 << 10));
    assert!((14..=18).contains(&small), "1 MiB, its piece: {small}");
    assert!((60..=68).contains(&unknown), "4 MiB, its one request at most: {unknown}");
}

/// mq-deadline starves the idle class as long as others ask. What of a job is on its way then explained the small reads of
/// another user, so that the job was let go after each short suspicion, with all that it could put on its way.
#[test]
fn a_suspicion_lasts_until_it_is_known_what_the_disk_serves() {
    let mut disk = Watched::new();
    disk.work.largest = 256 << 10;
    assert!((0..50).all(|_| !disk.pass(0, 0)), "alone");
    disk.starved = true;
    assert!((0..3).any(|_| disk.pass(3, 1)), "suspected");
    assert!((0..40).all(|_| disk.pass(3, 1)), "nothing of the job was served");
    disk.starved = false;
    assert!((0..40).all(|_| disk.pass(3, 1)), "now they are seen");
    let end = (0..100).position(|_| !disk.pass(0, 0)).expect("free again");
    assert!(end <= 25, "within 500 ms: {end}");
}
