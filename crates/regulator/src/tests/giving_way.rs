//! Giving way, on a simulated machine.

use discnice_ledger::member::{Books, Charged};
use discnice_units::{Moment, Nanos, Rate};

use crate::tests::simulation::{Machine, Others, read, read_with, yielding_class};
use crate::{File, Host, Regulator, Thread, ledger, occupy};

const RATE: u64 = 10 << 20;
const SECOND: u64 = Nanos::SECOND.0;

/// Reads a file while others do what `others` says; returns the machine.
fn read_beside(size: u64, others: Others, elsewhere: Others) -> Machine {
    let machine = Machine::new(size, true);
    read_on(&machine, RATE, 64 << 10, others, elsewhere);
    machine
}

/// Reads the file on a given machine, at a threshold and by calls of `count` bytes.
fn read_on(machine: &Machine, rate: u64, count: u64, others: Others, elsewhere: Others) {
    let books = Books::new();
    machine.others.set(others);
    machine.elsewhere.set(elsewhere);
    let (class, board) = yielding_class(rate);
    let regulator = Regulator::new(machine, class, &books).with_board(Some(board));
    read_with(machine, &regulator, count);
}

/// Bytes that were read from the disk between two moments.
fn read_between(machine: &Machine, from: u64, to: u64) -> u64 {
    machine.log.borrow().iter().filter(|one| one.0 >= from && one.0 < to).map(|one| one.1).sum()
}

fn seconds(machine: &Machine) -> f64 {
    machine.now().since(Moment(1_000_000_000_000)).as_secs_f64()
}

//= rate-windows/3.1-unfettered
#[test]
fn alone_it_runs_at_full_speed() {
    let machine = read_beside(400 << 20, |_| 0, |_| 0);
    assert_eq!(machine.longest_sleep.get(), 0);
    // A nanosecond a byte from the disk, a tenth from memory.
    assert!(seconds(&machine) < 0.6, "{}", seconds(&machine));
}

#[test]
fn others_on_another_disk_do_not_matter() {
    let machine = read_beside(400 << 20, |_| 0, |now| now / 5);
    let held = machine.longest_sleep.get();
    assert!(seconds(&machine) < 2.5, "held for a moment at most: {} s, {held}", seconds(&machine));
}

#[test]
fn gives_way_and_comes_back() {
    // Others read 200 MB/s from 0.3 s to 2.3 s.
    let others = |now: u64| now.clamp(3 * SECOND / 10, 23 * SECOND / 10) / 5 - 3 * SECOND / 50;
    let machine = read_beside(1200 << 20, others, |_| 0);
    let before = read_between(&machine, 0, 3 * SECOND / 10);
    assert!(before > 200 << 20, "full speed: {before}");
    let held = read_between(&machine, 5 * SECOND / 10, 23 * SECOND / 10);
    let most = 1.1 * 1.8 * RATE as f64 + f64::from(8 << 20);
    assert!((held as f64) < most, "held to its rate within 200 ms: {held}");
    let again = read_between(&machine, 23 * SECOND / 10, 43 * SECOND / 10);
    assert!(again > 500 << 20, "full speed within 2 s: {again}");
}

/// What is held from outside is not timed. rclone, with a dozen threads, moved small files from all over a disk: twelve
/// seeks at once were taken for one.
#[test]
fn threads_that_wait_for_the_disk_have_a_request_each() {
    let machine = Machine::new(400 << 20, true);
    machine.others.set(|now| now / 5);
    let (books, (class, board)) = (Books::new(), yielding_class(RATE));
    let regulator = Regulator::new(&machine, class, &books).with_board(Some(board));
    read_with(&machine, &regulator, 64 << 10);
    // The machine's disk has no seeks; this one has.
    (0..50).for_each(|_| class.note_piece(board, Nanos::from_millis(5), 0));
    let moved = Charged { read: 64 << 10, written: 0 };
    let owed = |waiting: u32| {
        let now = machine.now();
        let before = ledger::paid_at(class, now, moved);
        assert!(occupy(class, board, now, moved, || waiting));
        ledger::paid_at(class, now, moved).since(before).0
    };
    // What it did not use before counts no more after this.
    let _ = owed(1);
    let (none, one, eight) = (owed(0), owed(1), owed(8));
    assert!(one > 0 && none == one, "{none} {one}");
    assert!(eight > 7 * one && eight < 9 * one, "{eight} {one}");
}

#[test]
fn calls_of_a_whole_window_do_not_carry_on_the_kernels_read_ahead() {
    // Others read 200 MB/s from 0.1 s on; each call finds its data on their way, in a window that
    // the last one has the kernel read.
    let others = |now: u64| (now.max(SECOND / 10) - SECOND / 10) / 5;
    for count in [256 << 10, 1 << 20] {
        let machine = Machine::new(1200 << 20, true);
        machine.window.set(Some(count));
        // The first call was not looked at.
        machine.read(count);
        read_on(&machine, 1 << 20, count, others, |_| 0);
        let held = read_between(&machine, 5 * SECOND / 10, 45 * SECOND / 10);
        assert!(held < 6 << 20, "calls of {count}: {held} in 4 s");
    }
}

#[test]
fn takes_little_of_a_busy_disk() {
    // Others keep the disk busy all the time; a piece of ours is a seek of 20 ms.
    let machine = Machine::new(1200 << 20, true);
    machine.others.set(|now| now / 20);
    machine.busy.set(|now| now);
    machine.piece.set(20_000_000);
    let (class, board) = yielding_class(RATE);
    let books = Books::new();
    let regulator = Regulator::new(&machine, class, &books).with_board(Some(board));
    let (thread, file) = (Thread::default(), File::new());
    while seconds(&machine) < 60.0 {
        read(&machine, &regulator, &thread, &file, 64 << 10);
    }
    let (begin, end) = (SECOND, (seconds(&machine) * 1e9) as u64);
    let pieces = machine.log.borrow().iter().filter(|one| one.0 > begin).count() as u64;
    let part = (pieces * machine.piece.get()) as f64 / (end - begin) as f64;
    assert!((0.007..0.013).contains(&part), "a hundredth there, as much on the way back: {part}");
}

/// What `rm -r` dirties is in no account, and the commits of others wait for it: those of SQLite took 1.8 times as long.
#[test]
fn changes_of_names_wait_for_a_busy_disk() {
    let machine = Machine::new(400 << 20, true);
    machine.others.set(|now| now.max(SECOND) / 20 - SECOND / 20);
    machine.busy.set(|now| now.max(SECOND) - SECOND);
    let (books, (class, board)) = (Books::new(), yielding_class(RATE));
    let regulator = Regulator::new(&machine, class, &books).with_board(Some(board));
    let thread = Thread::default();
    machine.cache_all();
    let changes_until = |end: f64| {
        let mut changes = 0;
        while seconds(&machine) < end {
            // The account says nothing of it, but is looked at.
            regulator.admit_change();
            regulator.look(&thread);
            machine.seek(0);
            machine.read(200_000);
            changes += 1;
        }
        changes
    };
    let alone = changes_until(0.9);
    assert!(alone > 40_000, "{alone}");
    let _ = changes_until(1.5);
    // A piece of 64 takes 11 ms, as no other was timed, and the disk is busy all the time: 1.5 s.
    let (three, nine) = (changes_until(4.5), changes_until(13.5));
    assert!((64..=192).contains(&three) && (320..=448).contains(&nine), "{three} {nine}");
    assert!(machine.longest_sleep.get() > SECOND / 20, "together");
}

//= rate-windows/3.1-keeps-threshold
#[test]
fn keeps_its_least_rate_on_a_busy_disk() {
    const LEAST: u64 = 3 << 20;
    let read_beside = |least: Option<u64>| {
        let machine = Machine::new(1200 << 20, true);
        machine.others.set(|now| now / 20);
        machine.busy.set(|now| now);
        machine.piece.set(20_000_000);
        let (class, board) = yielding_class(RATE);
        let limits = class.limits().with_at_least(least.map(Rate::per_second));
        class.set_limits(Moment::FIRST, &limits);
        let books = Books::new();
        let regulator = Regulator::new(&machine, class, &books).with_board(Some(board));
        let (thread, file) = (Thread::default(), File::new());
        while seconds(&machine) < 60.0 {
            read(&machine, &regulator, &thread, &file, 64 << 10);
        }
        let kept = class.keeps_least(machine.now());
        let (begin, end) = (SECOND, (seconds(&machine) * 1e9) as u64);
        (read_between(&machine, begin, end) as f64 / ((end - begin) as f64 / 1e9), kept)
    };
    let (without, kept) = read_beside(None);
    assert!(without < 0.3 * LEAST as f64 && !kept, "{without}");
    let (rate, kept) = read_beside(Some(LEAST));
    assert!((0.9..1.1).contains(&(rate / LEAST as f64)) && kept, "{rate}");
}

#[test]
fn without_a_board_it_is_held() {
    let (machine, books) = (Machine::new(20 << 20, true), Books::new());
    let (class, _) = yielding_class(RATE);
    read_with(&machine, &Regulator::new(&machine, class, &books), 64 << 10);
    assert!(seconds(&machine) > 1.0, "{}", seconds(&machine));
}
