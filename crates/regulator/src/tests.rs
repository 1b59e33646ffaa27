//! The regulator on a simulated machine.

use discnice_budget::Direction;
use discnice_budget::member::Books;
use discnice_estimator::behind::InodeTable;
use discnice_estimator::{Estimator, Modules, System, Verdict};
use discnice_policy::pace::Rule;
use discnice_units::{Nanos, Rate};
use proptest::prelude::*;

use crate::simulation::{self, Machine, class, most, read_all, write};
use crate::{Advice, File, FileStatus, Host, Regulator, Thread, Ticket};

const RATE: u64 = 5 << 20;

fn machine(size: u64) -> Machine {
    Machine::new(size, true)
}

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
        let seconds = machine.now().minus(Nanos(1_000_000_000_000)).as_secs_f64();
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
    let seconds = machine.now().minus(Nanos(1_000_000_000_000)).as_secs_f64();
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
    let waited = machine.now().minus(begun).as_secs_f64();
    assert!(waited < 0.5, "{waited} s");
    let held = regulator.admit_copy(&thread, (simulation::PIPE, &from), true, (4, &to), 1 << 30);
    // Another thread, while that one waits for what comes.
    regulator.reserve_write(&Thread::default(), 4096);
    let waited = machine.now().minus(begun).as_secs_f64();
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
        let seconds = machine.now().minus(Nanos(1_000_000_000_000)).as_secs_f64();
        assert!((19.0..21.5).contains(&seconds), "honest {honest}: {seconds} s");
        let slot = class.estimation().file_systems().iter().next().map(|fs| fs.verdict());
        assert_eq!(slot, Some(Verdict::Silent));
    }
}

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
fn who_lists_what_a_daemon_serves_pays_for_directories_and_inodes_once() {
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
        assert!(!regulator.looked_at(directory), "nobody serves it");
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
    let paced = machine.now().minus(Nanos(1_000_000_000_000)).as_secs_f64();
    assert!(paced >= 0.5 * machine.disk_reads() as f64 / RATE as f64, "held for {paced} s");
}

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
    assert!(thread.has_written(0), "the next write is looked at");
    machine.seek(0);
    write(&regulator, &machine, &thread, &file, 64);
    regulator.before_close(&thread, 3, &file);
    let started: u64 = machine.started.borrow().iter().map(|(_, length)| length).sum();
    assert_eq!(started, machine.account().written);
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

//= discnice/4.4-registered
#[test]
fn rewriting_costs_nothing_and_is_not_written_back() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(1 << 20));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for _ in 0..10_000 {
        machine.seek(0);
        write(&regulator, &machine, &thread, &file, 10 << 10);
    }
    assert!(class.direction(Direction::Write).total() <= 16 << 10);
    assert_eq!(machine.longest_sleep.get(), 0);
    assert!(machine.started.borrow().is_empty());
}

//= discnice/4.4-unlink
#[test]
fn deleted_data_is_credited() {
    let (machine, books, class) = (machine(0), Books::new(), class(1 << 20));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for round in 0..1000 {
        machine.seek(round * (12 << 10));
        write(&regulator, &machine, &thread, &file, 10 << 10);
        // Deleted before it was written.
        machine.cancelled.set(class_written(&machine));
        file.forget();
    }
    assert!(machine.longest_sleep.get() < 60_000_000, "{}", machine.longest_sleep.get());
    // One for each two slices, of 192 KiB.
    let questions = machine.questions.get();
    assert!((20..=40).contains(&questions), "{questions}");
    let charged = || class.total().total();
    assert!(charged() > 0, "what was written since the last question");
    regulator.look_at_end(&thread);
    assert_eq!(charged(), 0);
}

#[test]
fn deleted_data_is_credited_where_nobody_waits() {
    let (machine, books, class) = (machine(0), Books::new(), class(u64::MAX));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for round in 0..100 {
        machine.seek(round * (12 << 10));
        write(&regulator, &machine, &thread, &file, 10 << 10);
        thread.removes();
        machine.cancelled.set(class_written(&machine));
    }
    regulator.look_at_end(&thread);
    assert_eq!((class.total().total(), machine.questions.get()), (0, 1));
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
        assert!(thread.is_due(10_000_000, result));
        regulator.complete_read(&thread, 3, &file, Ticket::FREE, None, result);
    }
    assert_eq!(class.total().total(), 0);
    let verdict = class.estimation().file_systems().iter().next().map(|fs| fs.verdict());
    assert_ne!(verdict, Some(Verdict::Silent));
}

#[test]
fn what_is_known_of_the_cache_stays_known_to_who_only_lost_the_processor() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(1 << 30));
    class.choose(Estimator::Predict, Modules::ALL_ON);
    machine.cache_all();
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    regulator.classify(3, &file);
    thread.waits_before(|| machine.missed.get());
    let known_after_a_slow_read = || {
        let _ = regulator.forecast_read(3, &file, 8192, 4096);
        assert!(file.knows_cached(4096, Some(8192)));
        assert!(thread.is_due(10_000_000, 4096));
        regulator.complete_read(&thread, 3, &file, Ticket::FREE, Some(8192), 4096);
        file.knows_cached(4096, Some(8192))
    };
    assert!(known_after_a_slow_read());
    machine.missed.set(machine.missed.get() + 1);
    assert!(!known_after_a_slow_read(), "it waited");
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

#[test]
fn who_no_longer_deletes_what_he_writes_is_held_soon() {
    let (machine, books, class) = (machine(0), Books::new(), class(1 << 20));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let written = |offset| {
        machine.seek(offset);
        write(&regulator, &machine, &thread, &file, 12 << 10);
        file.forget();
    };
    for round in 0..1000 {
        written(round * (12 << 10));
        machine.cancelled.set(class_written(&machine));
    }
    let before = (machine.now(), class_written(&machine));
    for round in 1000..1500 {
        written(round * (12 << 10));
    }
    let bytes = class_written(&machine) - before.1;
    let allowed = f64::from(1 << 20) * machine.now().minus(before.0).as_secs_f64() + 300e3;
    assert!(bytes as f64 <= allowed, "{bytes} of {allowed}");
}

fn class_written(machine: &Machine) -> u64 {
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
fn a_lifted_limit_gives_the_programs_own_advice_back() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(RATE));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let _ = regulator.admit_read(&thread, 3, &file, 4096, None);
    assert!(file.is_shaped());
    regulator.program_advised(3, &file, Advice::Sequential);
    assert!(file.is_shaped(), "ours again, while the limit holds");
    class.set_limits(machine.now(), &discnice_policy::Limits::UNLIMITED);
    let _ = regulator.admit_read(&thread, 3, &file, 4096, None);
    assert!(!file.is_shaped() && file.wants_sequential());
}

#[test]
fn windows_that_a_program_doubles_are_halved_while_a_limit_holds() {
    let fast = 64 << 20;
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(fast));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let advised = || machine.advice.take();
    // It maps the file, or reads it by io_uring: no read is seen.
    regulator.program_advised(3, &file, Advice::Sequential);
    assert_eq!(advised(), Some(Advice::Normal));
    class.set_limits(machine.now(), &discnice_policy::Limits::UNLIMITED);
    let _ = regulator.admit_read(&thread, 3, &file, 4096, None);
    assert_eq!(advised(), Some(Advice::Sequential));
    regulator.program_advised(3, &file, Advice::Sequential);
    assert_eq!(advised(), None, "nothing holds any more");
}

#[test]
fn who_says_that_he_reads_in_order_is_shaped_before_he_does_under_a_low_limit() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(RATE));
    let (regulator, file) = (Regulator::new(&machine, class, &books), File::new());
    regulator.program_advised(3, &file, Advice::Sequential);
    assert!(file.is_shaped());
    assert_eq!(machine.advice.get(), Some(Advice::Random));
}

#[test]
fn a_program_that_wants_random_access_is_left_alone() {
    let (machine, books, class) = (machine(100 << 20), Books::new(), class(RATE));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    regulator.program_advised(3, &file, Advice::Random);
    for at in (0..100u64).map(|n| n * 7919 * 4096 % (100 << 20)) {
        machine.seek(at);
        let ticket = regulator.admit_read(&thread, 3, &file, 100, Some(at));
        let result = machine.read(100);
        regulator.complete_read(&thread, 3, &file, ticket, Some(at), result);
    }
    assert!(!file.is_stream() && !file.is_shaped());
}

#[test]
fn a_cached_program_waits_for_nobody() {
    let (machine, books, class) = (machine(40 * RATE), Books::new(), class(RATE));
    machine.cache_all();
    let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
    // Another process owes a minute.
    let owed = Ticket { read: 0, ..Ticket::FREE };
    regulator.settle_as(owed, 60 * RATE, 0);
    assert!(!regulator.bring_in(&thread, 3, 0..machine.size, false));
    assert_eq!(machine.longest_sleep.get(), 0);
    assert_eq!(machine.disk_reads(), 0);
}

#[test]
fn a_cold_program_is_brought_in_smoothly() {
    let (machine, books, class) = (machine(10 * RATE), Books::new(), class(RATE));
    let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
    assert!(regulator.bring_in(&thread, 3, 0..machine.size, false));
    assert_eq!(machine.disk_reads(), machine.size);
    let log = machine.log.borrow();
    let rule = class.pace().rule(Rate::per_second(RATE));
    let tenth = rule.rate.units_in(Nanos::from_millis(100).plus(rule.credit())) + rule.slice();
    assert!(most(&log, 100_000_000) <= tenth, "{} above {tenth}", most(&log, 100_000_000));
    assert!(most(&log, 5_000_000_000) as f64 <= 1.02 * 5.0 * RATE as f64);
    let seconds = machine.now().minus(Nanos(1_000_000_000_000)).as_secs_f64();
    assert!((9.5..11.0).contains(&seconds), "{seconds}");
}

#[test]
fn nothing_is_brought_in_at_high_limits() {
    for rate in [32 << 20, u64::MAX] {
        let (machine, books, class) = (machine(RATE), Books::new(), class(rate));
        let (regulator, thread) = (Regulator::new(&machine, class, &books), Thread::default());
        assert!(!regulator.faults_burst());
        regulator.bring_in(&thread, 3, 0..machine.size, false);
        assert_eq!(machine.disk_reads(), 0);
    }
}

#[test]
fn who_is_only_predicted_writes_when_the_kernel_likes() {
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
    let rewrites = || (0..).take_while(|_| file.knows_dirty(100, Some(0))).count();
    assert_eq!((rewrites(), rewrites()), (16, 0));
    file.note_asked();
    assert_eq!(rewrites(), 16);
    let fs = discnice_estimator::FileSystem::default();
    assert_eq!(fs.still_dirty(5, Some(0)), 5, "it never told of any, as a stacked file system");
    assert_eq!([Some(3), Some(9), None, Some(0)].map(|told| fs.still_dirty(5, told)), [3, 5, 5, 0]);
    assert!(!file.knows_dirty(1 << 20, Some(0)), "a long one is asked for each time");
}
