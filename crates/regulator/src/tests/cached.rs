//! What is in the page cache costs nothing, and finding that out costs little.

use discnice_estimator::fuse_reads::InodeTable;
use discnice_estimator::{Estimator, Modules, Verdict};
use discnice_ledger::Direction;
use discnice_ledger::member::Books;
use discnice_units::Moment;

use super::{RATE, machine};
use crate::tests::simulation::{self, Machine, class, read_all, write};
use crate::{File, FileStatus, Host, Regulator, Thread, Ticket};

#[test]
fn what_lies_in_memory_costs_nothing() {
    for estimator in [Estimator::Auto, Estimator::Predict] {
        let (mut machine, books, class) = (machine(0), Books::new(), class(RATE));
        machine.memory = true;
        machine.told.set(|_| 0);
        class.choose(estimator, Modules::ALL_ON);
        let (regulator, thread, file) =
            (Regulator::new(&machine, class, &books), Thread::default(), File::new());
        for _ in 0..100 {
            write(&regulator, &machine, &thread, &file, 64 << 10);
        }
        assert_eq!(class.total().total(), 0, "{estimator:?}");
    }
}

#[test]
fn listing_what_a_daemon_serves_costs_directories_and_inodes_once() {
    for (estimator, table, paid) in [
        (Estimator::Predict, "ext4", true),
        (Estimator::Auto, "ext4", true),
        (Estimator::Account, "ext4", false),
        (Estimator::Predict, "tmpfs", false),
    ] {
        let (machine, books, class) = (machine(8192), Books::new(), class(RATE));
        class.choose(estimator, Modules::ALL_ON);
        let regulator = Regulator::new(&machine, class, &books);
        let directory = FileStatus { regular: false, ..machine.status(3).unwrap() };
        let systems = class.estimation().file_systems();
        let fs = systems.get(systems.slot(directory.device)).unwrap();
        fs.calibrate(Verdict::Silent);
        assert!(!regulator.looked_at(directory), "no daemon serves it");
        fs.serve(32, InodeTable::of(table));
        // All in one stretch of the table but the last.
        let first = directory.inode / 512 * 512;
        for inode in [first, first + 1, first + 511, first + 512, first] {
            regulator.listed(directory, inode);
        }
        let wanted = if paid { (32 + 32 + 2) * 4096 } else { 0 };
        assert_eq!(class.direction(Direction::Read).total(), wanted, "{estimator:?} {table}");
    }
}

#[test]
fn holes_cost_the_disk_nothing() {
    let (machine, books, class) = (machine(20 << 20), Books::new(), class(RATE));
    machine.hole.set(10 << 20);
    class.choose(Estimator::Predict, Modules::ALL_ON);
    // An assembler's way: a header in front of what it has left out.
    let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
    machine.seek(64);
    write(&regulator, &machine, &thread, &File::new(), 4000);
    assert_eq!(class.direction(Direction::Read).total(), 0);
    assert_eq!(class.direction(Direction::Write).total(), 4096);
    machine.seek(0);
    read_all(&machine, class, &books, 64 << 10);
    assert_eq!(machine.disk_reads(), 10 << 20);
    assert_eq!(class.direction(Direction::Read).total(), 10 << 20);
}

#[test]
fn a_cached_foreign_file_is_soon_read_without_probes_and_probed_again_after_a_miss() {
    let (machine, books) = (Machine::new(4 << 20, false), Books::new());
    let class = class(RATE);
    class.choose(Estimator::Predict, Modules::ALL_ON);
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    machine.cache_all();
    // Far apart, so that none is examined with the one before it.
    let read_some = |pages: core::ops::Range<u64>| {
        pages.step_by(48).for_each(|page| {
            machine.seek(page * 4096);
            let _ = simulation::read(&machine, &regulator, &thread, &file, 4096);
        });
    };
    for _ in 0..10 {
        read_some(0..1024);
    }
    let before = machine.probes.get();
    for _ in 0..10 {
        read_some(0..1024);
    }
    assert_eq!(machine.probes.get(), before);
    assert_eq!(class.direction(Direction::Read).total(), 0);
    machine.drop_cached(3, 0, 4 << 20);
    for start in 1..20 {
        read_some(start..1024);
    }
    let (predicted, truth) = (class.direction(Direction::Read).total(), machine.disk_reads());
    assert!(truth.abs_diff(predicted) <= 4096, "{predicted} of {truth}");
    assert!(truth > 400 * 4096 && machine.probes.get() > before);
}

#[test]
fn a_foreign_file_is_not_probed_where_the_account_tells() {
    let (machine, books, class) = (Machine::new(4 << 20, false), Books::new(), class(RATE));
    class.choose(Estimator::Account, Modules::ALL_ON);
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    // As many readers of one descriptor do: no stream that could be followed.
    for page in (0..1024).step_by(6) {
        machine.seek(page * 4096);
        let _ = simulation::read(&machine, &regulator, &thread, &file, 8192);
    }
    assert_eq!(machine.probes.get(), 0);
    assert!(machine.disk_reads() >= 170 * 8192);
    assert_eq!(class.direction(Direction::Read).total(), machine.disk_reads());
    let paced = machine.now().since(Moment(1_000_000_000_000)).as_secs_f64();
    assert!(paced >= 0.5 * machine.disk_reads() as f64 / RATE as f64, "held for {paced} s");
}

//= discnice/4-cache
//= rate-windows/4-conservative
#[test]
fn what_is_cached_costs_nothing() {
    for honest in [true, false] {
        let (machine, books) = (Machine::new(50 * RATE, honest), Books::new());
        machine.cache_all();
        read_all(&machine, class(RATE), &books, 64 << 10);
        assert_eq!(machine.longest_sleep.get(), 0, "honest: {honest}");
    }
}

//= discnice/4-cache
#[test]
fn cached_reads_pass_while_the_class_is_in_debt() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(RATE));
    machine.cache_all();
    class.total().settle(class.pace(), machine.now(), 0, 10 * RATE);
    let regulator = Regulator::new(&machine, class, &books);
    let ticket = regulator.admit_read(&Thread::default(), 3, &File::new(), 4096, Some(0));
    assert_eq!((ticket.read, ticket.look, machine.longest_sleep.get()), (0, true, 0));
}

#[test]
fn a_cached_read_that_was_slow_for_another_reason_is_not_charged() {
    let (machine, books, class) = (machine(64 << 10), Books::new(), class(1 << 30));
    class.choose(Estimator::Auto, Modules::ALL_ON);
    machine.cache_all();
    let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
    for _ in 0..100 {
        // Each file is new to us; a cycle counter says that the read took long.
        let file = File::new();
        machine.seek(0);
        let result = machine.read(64 << 10);
        assert!(thread.countdown.count(10_000_000, result).is_some());
        regulator.complete_read(&thread, 3, &file, Ticket::FREE, None, result);
    }
    assert_eq!(class.total().total(), 0);
    let verdict = class.estimation().file_systems().iter().next().map(|fs| fs.verdict());
    assert_ne!(verdict, Some(Verdict::Silent));
}

#[test]
fn what_is_known_of_the_cache_outlives_a_lost_processor() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(1 << 30));
    class.choose(Estimator::Predict, Modules::ALL_ON);
    machine.cache_all();
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    regulator.classify(3, &file);
    thread.note_waits_before(|| machine.missed.get());
    let known_after_a_slow_read = || {
        let _ = regulator.forecast_read(3, &file, 8192, 4096);
        assert!(file.knows_cached(4096, Some(8192)));
        assert!(thread.countdown.count(10_000_000, 4096).is_some());
        regulator.complete_read(&thread, 3, &file, Ticket::FREE, Some(8192), 4096);
        file.knows_cached(4096, Some(8192))
    };
    assert!(known_after_a_slow_read());
    machine.missed.set(machine.missed.get() + 1);
    assert!(!known_after_a_slow_read(), "it waited");
}
