//! What is read: held smoothly, read together, charged by what it costs.

use discnice_estimator::{Estimator, Modules, System, Verdict};
use discnice_ledger::Direction;
use discnice_ledger::member::Books;
use discnice_units::Moment;
use proptest::prelude::*;

use super::{RATE, machine};
use crate::tests::simulation::{self, Machine, class, most, read_all, write};
use crate::{File, Host, Regulator, Thread};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    //= discnice/5.4-reset
    //= discnice/4-read-ahead
    #[test]
    fn a_sequential_reader_is_held_smoothly(count in 512u64..2 << 20, rate in 1u64 << 20..40 << 20) {
        let (machine, books) = (machine(10 * rate), Books::new());
        let class = class(rate);
        read_all(&machine, class, &books, count);
        let log = machine.log.borrow();
        prop_assert_eq!(machine.disk_reads(), machine.size.next_multiple_of(4096));
        prop_assert_eq!(class.direction(Direction::Read).total(), machine.disk_reads());
        let (five, tenth) = (most(&log, 5_000_000_000), most(&log, 100_000_000));
        // Below 512 KiB slices last longer than 40 ms.
        let bound = if rate < 2 << 20 { 1.03 } else if rate < 13 << 20 { 1.025 } else { 1.02 };
        prop_assert!(five as f64 <= bound * 5.0 * rate as f64, "5 s: {}", five as f64 / rate as f64);
        // The kernel's one window of read-ahead before the file is known, and the first call.
        prop_assert!(tenth as f64 <= 0.3 * rate as f64 + count as f64, "{tenth}");
        let seconds = machine.now().since(Moment(1_000_000_000_000)).as_secs_f64();
        prop_assert!(machine.size as f64 / seconds >= 0.95 * rate as f64, "{seconds}");
    }
}

#[test]
fn what_is_read_past_the_cache_is_neither_read_ahead_nor_free() {
    for cached in [false, true] {
        let mut machine = machine(20 * RATE);
        machine.direct = true;
        if cached {
            machine.cache_all();
        }
        let (books, class) = (Books::new(), class(RATE));
        read_all(&machine, class, &books, 64 << 10);
        assert_eq!(machine.disk_reads(), 20 * RATE, "cached {cached}: read twice");
        let tenth = most(&machine.log.borrow(), 100_000_000);
        assert!(tenth <= 3 * RATE / 10, "cached {cached}: {tenth} bytes at once");
    }
}

#[test]
fn long_reads_anywhere_are_read_in_slices() {
    let (machine, books, class) = (machine(400 << 20), Books::new(), class(RATE));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for at in [0, 200, 50, 300] {
        machine.seek(at << 20);
        simulation::read(&machine, &regulator, &thread, &file, 8 << 20);
    }
    assert_eq!(machine.disk_reads(), 32 << 20);
    let tenth = most(&machine.log.borrow(), 100_000_000);
    assert!(tenth <= 3 * RATE / 10, "{tenth} bytes at once");
}

#[test]
fn a_long_read_ends_though_another_thread_jumps_about_by_its_descriptor() {
    let (machine, books, class) = (machine(16 << 20), Books::new(), class(RATE));
    let file: &'static File = Box::leak(Box::new(File::new()));
    machine.shared.set(Some(file));
    let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
    simulation::read(&machine, &regulator, &thread, file, 16 << 20);
    assert_eq!(machine.disk_reads(), 16 << 20);
    let tenth = most(&machine.log.borrow(), 100_000_000);
    assert!(tenth <= 3 * RATE / 10, "{tenth} bytes at once");
}

#[test]
fn nothing_more_is_read_for_a_program_that_was_killed() {
    let (machine, books, class) = (machine(64 << 20), Books::new(), class(RATE));
    machine.killed_at.set(Some(1_000_000_000));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let _ = regulator.admit_read(&thread, 3, &file, 64 << 20, None);
    let read = machine.disk_reads();
    assert!(read <= RATE * 6 / 5, "{read} bytes in a second");
    assert_eq!(class.direction(Direction::Read).total(), read, "all of it is charged, and no more");
}

//= rate-windows/3.2-longest
#[test]
fn one_long_copy_is_paid_for_and_written_back_in_pieces() {
    let mut machine = machine(16 << 20);
    machine.outside = true;
    let (books, class, thread) = (Books::new(), class(RATE), Thread::default());
    let (regulator, from, to) = (Regulator::new(&machine, class, &books), File::new(), File::new());
    let count = machine.size;
    let ticket = regulator.admit_copy(&thread, (3, &from), true, (4, &to), count);
    assert_eq!(machine.disk_reads(), count, "all of it was read before, at the limit's pace");
    let result = machine.write(count);
    regulator.complete_copy(&thread, (4, &to), ticket, result);
    for (log, what) in [(&machine.log, "read"), (&machine.flushed, "written back")] {
        let log = log.borrow();
        assert_eq!(log.iter().map(|(_, bytes)| bytes).sum::<u64>(), count, "{what}");
        let second = most(&log, 1_000_000_000);
        assert!(second <= RATE * 6 / 5, "{what}: {second} bytes in a second");
    }
    let seconds = machine.now().since(Moment(1_000_000_000_000)).as_secs_f64();
    assert!((6.0..6.6).contains(&seconds), "{seconds}");
}

#[test]
fn what_a_pipe_could_give_at_most_is_not_waited_for() {
    let (mut machine, books, class) = (machine(0), Books::new(), class(RATE));
    machine.outside = true;
    let (thread, from, to) = (Thread::default(), File::new(), File::new());
    let regulator = Regulator::new(&machine, class, &books);
    let begun = machine.now();
    // As programs in Go copy from a pipe: as much as comes.
    for _ in 0..2 {
        let ticket =
            regulator.admit_copy(&thread, (simulation::PIPE, &from), true, (4, &to), 1 << 30);
        regulator.complete_copy(&thread, (4, &to), ticket, 0);
    }
    let waited = machine.now().since(begun).as_secs_f64();
    assert!(waited < 0.5, "{waited} s");
    let held = regulator.admit_copy(&thread, (simulation::PIPE, &from), true, (4, &to), 1 << 30);
    // Another thread, while that one waits for what comes.
    regulator.reserve_write(&Thread::default(), 4096);
    let waited = machine.now().since(begun).as_secs_f64();
    assert!(waited < 0.5, "beside one that copies from a pipe: {waited} s");
    regulator.complete_copy(&thread, (4, &to), held, 0);
}

#[test]
fn a_silent_account_is_found_out_and_the_prediction_charged() {
    for honest in [true, false] {
        let mut machine = Machine::new(20 * RATE, honest);
        machine.silent = true;
        let (books, class) = (Books::new(), class(RATE));
        class.choose(Estimator::Auto, Modules::ALL_ON);
        read_all(&machine, class, &books, 64 << 10);
        assert_eq!(class.direction(Direction::Read).total(), machine.disk_reads(), "{honest}");
        let seconds = machine.now().since(Moment(1_000_000_000_000)).as_secs_f64();
        assert!((19.0..21.5).contains(&seconds), "honest {honest}: {seconds} s");
        let slot = class.estimation().file_systems().iter().next().map(|fs| fs.verdict());
        assert_eq!(slot, Some(Verdict::Silent));
    }
}

//= discnice/4.1-modules
#[test]
fn predictions_alone_are_what_the_disk_does() {
    for (honest, count) in [(true, 4096), (true, 1 << 20), (false, 64 << 10)] {
        let (machine, books, class) = (Machine::new(20 * RATE, honest), Books::new(), class(RATE));
        class.choose(Estimator::Predict, Modules::ALL_ON);
        read_all(&machine, class, &books, count);
        let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
        let file = File::new();
        machine.seek(0);
        (0..100).for_each(|_| write(&regulator, &machine, &thread, &file, 10_000));
        (0..9).for_each(|_| {
            machine.seek(0);
            write(&regulator, &machine, &thread, &file, 10_000);
        });
        regulator.look(&thread);
        let truth = machine.account();
        let totals = class.prediction();
        assert_eq!(totals.predicted, truth.read + truth.written, "honest {honest}, {count}");
        assert_eq!(totals.predicted, totals.account);
        assert_eq!(class.total().total(), totals.predicted);
    }
}

#[test]
fn steps_are_read_together_and_nothing_between_them() {
    let (step, reads) = (5 * 4096, 4000);
    let (machine, books, class) = (machine(step * (reads + 4)), Books::new(), class(20 * RATE));
    let regulator = Regulator::new(&machine, class, &books);
    let (thread, file) = (Thread::default(), File::new());
    // What the kernel reads ahead before the file is known.
    let begin = 4 * step;
    machine.seek(begin);
    let one = || simulation::read(&machine, &regulator, &thread, &file, 4096);
    for number in 0..reads {
        machine.seek(begin + number * step);
        assert_eq!(one(), 4096);
    }
    regulator.look(&thread);
    assert_eq!(class.direction(Direction::Read).total(), machine.disk_reads());
    assert!(machine.disk_reads() <= (reads + 25) * 4096, "{}", machine.disk_reads());
    assert!(machine.missed.get() < reads / 20, "{} calls waited", machine.missed.get());
    // Where steps differ, nothing is read that is not wanted.
    let before = machine.disk_reads();
    let (mut at, mut wanted) = (machine.size / 2, 0);
    for number in 0..100 {
        at += 4096 * (6 + number);
        machine.seek(at);
        wanted += machine.count(3, at, 4096).map_or(0, |counts| 4096 * (1 - counts.cached));
        one();
    }
    assert_eq!(machine.disk_reads() - before, wanted);
}
