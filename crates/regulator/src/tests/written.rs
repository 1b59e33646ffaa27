//! What is written: written back in portions, with what other calls dirtied.

use discnice_estimator::{Estimator, Modules};
use discnice_ledger::Direction;
use discnice_ledger::member::Books;

use super::{RATE, machine};
use crate::tests::simulation::{Machine, class, write};
use crate::{File, Host, Regulator, Thread};

#[test]
fn small_files_of_many_processes_are_not_left_to_the_kernel() {
    const FILE: u64 = 32 << 10;
    let class = class(1 << 20);
    // A compiler's way: each process writes one file and ends.
    let compile = |cancelled: u64| {
        let (machine, books) = (machine(FILE), Books::new());
        machine.cancelled.set(cancelled);
        let (thread, file) = (Thread::default(), File::new());
        let regulator = Regulator::new(&machine, class, &books);
        write(&regulator, &machine, &thread, &file, FILE);
        regulator.before_close(&thread, 3, &file);
        machine.started.take().iter().map(|(_, length)| length).sum::<u64>()
    };
    let some = |files: u64, cancelled| (0..files).map(|_| compile(cancelled)).sum::<u64>();
    assert_eq!(some(3, 0), 0, "they may be deleted soon");
    let started = some(37, 0);
    assert!(40 * FILE - started <= 104_857, "{started}");
    // What was left is deleted.
    assert_eq!(some(2, 3 * FILE), 0);
}

#[test]
fn what_other_calls_find_dirtied_is_written_back_with_the_file() {
    let (machine, class, books) = (machine(1 << 20), class(RATE), Books::new());
    let (thread, file) = (Thread::default(), File::new());
    let regulator = Regulator::new(&machine, class, &books);
    write(&regulator, &machine, &thread, &file, 100 << 10);
    machine.seek(0);
    write(&regulator, &machine, &thread, &file, 4096);
    assert!(file.rewrites());
    // A linker's way: it goes on elsewhere in the file, and reads others meanwhile.
    machine.seek(200 << 10);
    write(&regulator, &machine, &thread, &file, 60 << 10);
    regulator.look(&thread);
    assert!(thread.writes.count(0).is_some(), "the next write is looked at");
    machine.seek(0);
    write(&regulator, &machine, &thread, &file, 64);
    regulator.before_close(&thread, 3, &file);
    let started: u64 = machine.started.borrow().iter().map(|(_, length)| length).sum();
    assert_eq!(started, machine.account().written);
}

pub(super) fn class_written(machine: &Machine) -> u64 {
    machine.account().written
}

//= discnice/4-delayed-write
//= discnice/5.3-after-flush
#[test]
fn writing_in_order_is_written_back_in_portions() {
    let (machine, books, class) = (machine(0), Books::new(), class(RATE));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for _ in 0..400 {
        write(&regulator, &machine, &thread, &file, 64 << 10);
    }
    let started = machine.started.borrow();
    let bytes: u64 = started.iter().map(|range| range.1).sum();
    assert!(started.iter().all(|range| range.1 <= 3 << 20), "{started:?}");
    assert!(bytes >= 20 << 20, "all but the last portions: {bytes}");
}

#[test]
fn predicted_writes_are_left_to_the_kernel() {
    for (rate, steadily) in [(u64::MAX, false), (RATE, true)] {
        let (machine, books, class) = (machine(RATE), Books::new(), class(rate));
        class.choose(Estimator::Predict, Modules::ALL_ON);
        let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
        let file = File::new();
        for _ in 0..64 {
            write(&regulator, &machine, &thread, &file, 128 << 10);
        }
        regulator.before_close(&thread, 3, &file);
        assert_eq!(class.direction(Direction::Write).total(), 8 << 20);
        assert_eq!(!machine.started.borrow().is_empty(), steadily);
    }
}

//= discnice/5.2-flush-detection
#[test]
fn what_the_kernel_has_written_costs_again_when_it_is_rewritten() {
    for honest in [true, false] {
        let (mut machine, books, class) = (machine(0), Books::new(), class(u64::MAX));
        machine.honest = honest;
        class.choose(Estimator::Predict, Modules::ALL_ON);
        let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
        let file = File::new();
        let sweep = || {
            machine.seek(0);
            (0..16).for_each(|_| write(&regulator, &machine, &thread, &file, 64 << 10));
            class.direction(Direction::Write).total()
        };
        assert_eq!((sweep(), sweep(), sweep()), (1 << 20, 1 << 20, 1 << 20), "it is dirty");
        machine.flush();
        let again = if honest { 2 << 20 } else { 1 << 20 };
        assert_eq!((sweep(), sweep()), (again, again), "the kernel tells: {honest}");
    }
}

//= discnice/5.2-flush-detection
#[test]
fn a_descriptor_asks_again_after_some_rewritten_pages() {
    let file = File::new();
    file.set_dirty(0, 1 << 20);
    let rewrites = || {
        let known = |_: &i32| file.knows_dirty(100, Some(0));
        (0..).take_while(known).inspect(|_| file.note_rewritten(100)).count()
    };
    assert_eq!((rewrites(), rewrites()), (16, 0));
    file.note_asked();
    assert_eq!(rewrites(), 16);
    let fs = discnice_estimator::FileSystem::default();
    assert_eq!(fs.still_dirty(5, Some(0)), 5, "it never told of any, as a stacked file system");
    assert_eq!([Some(3), Some(9), None, Some(0)].map(|told| fs.still_dirty(5, told)), [3, 5, 5, 0]);
    assert!(!file.knows_dirty(1 << 20, Some(0)), "a long one is asked for each time");
}

#[test]
fn a_predicted_write_that_fails_or_ends_early_costs_what_it_moved() {
    let (machine, books, class) = (machine(0), Books::new(), class(1 << 40));
    class.choose(Estimator::Predict, Modules::ALL_ON);
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let written = || class.direction(Direction::Write).total();
    for (count, result) in [(u64::MAX, -1), (1 << 30, -1), (1 << 30, 4096), (4096, -1)] {
        let before = written();
        let ticket = regulator.admit_write(&thread, 3, &file, Some(1 << 20), count);
        regulator.complete_write(&thread, 3, &file, ticket, Some(1 << 20), result);
        let cost = written() - before;
        assert!(cost <= 2 * 4096 && (result > 0 || cost == 0), "{count}, {result}: {cost}");
    }
    // What was not written then is new now.
    let ticket = regulator.admit_write(&thread, 3, &file, Some(2 << 20), 64 << 10);
    assert_eq!(ticket.write, 64 << 10);
    regulator.complete_write(&thread, 3, &file, ticket, Some(2 << 20), 64 << 10);
}
