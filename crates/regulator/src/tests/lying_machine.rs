//! Clocks that jump and counters that lie: whatever the machine says, programs go on, and a limit that is
//! lost for a moment holds again.

use discnice_estimator::{Estimator, Modules};
use discnice_ledger::Class;
use discnice_ledger::member::Books;
use discnice_ledger::policy::{Limits, Resource};
use discnice_units::{Moment, Rate};

use crate::host::Host;
use crate::tests::simulation::{Counted, Machine, class, most, read, write, yielding_class};
use crate::{File, Regulator, Thread};

const RATE: u64 = 5 << 20;
const SECOND: u64 = 1_000_000_000;
const HOURS: i64 = 5 * 3600 * SECOND as i64;
/// Seconds that the file takes.
const WHOLE: u64 = 60;
/// A debt that is not believed is waived beyond 64 MiB, and the queue's two seconds.
const WAIVED: u64 = (64 << 20) / RATE + 2;

/// What a counter tells for the truth.
type Told = fn(u64) -> u64;
const TRUTH: Told = |truth| truth;

/// A machine and its class under each estimator.
fn machines() -> impl Iterator<Item = (Machine, &'static Class, Estimator)> {
    Estimator::ALL.into_iter().map(|(_, estimator)| {
        let (machine, class) = (Machine::new(WHOLE * RATE, true), class(RATE));
        class.choose(estimator, Modules::ALL_ON);
        (machine, class, estimator)
    })
}

/// Reads the whole file, and calls `then` behind each call with the part that is done, in sixtieths.
fn read_through(machine: &Machine, class: &Class, mut then: impl FnMut(u64)) {
    let (books, thread, file) = (Books::new(), Thread::default(), File::new());
    let regulator = Regulator::new(machine, class, &books);
    let mut done = 0;
    loop {
        let moved = read(machine, &regulator, &thread, &file, 64 << 10);
        if moved <= 0 {
            break;
        }
        done += moved as u64;
        then(done / RATE);
    }
    assert_eq!(done, machine.size, "a program reads what it asks for");
}

/// What passed from a moment on, in seconds, was held: in no five seconds more than the limit.
fn assert_held(machine: &Machine, from: u64, to: u64, what: &str) {
    let within = |entry: &&(u64, u64)| (from..to).contains(&entry.0);
    let log: Vec<(u64, u64)> = machine.log.borrow().iter().filter(within).copied().collect();
    let five = most(&log, 5 * SECOND) as f64 / (5 * RATE) as f64;
    assert!(five <= 1.03 && !log.is_empty(), "{what}: {five} of the limit in 5 s");
}

#[test]
fn a_clock_that_jumps_loses_no_limit_and_holds_no_thread_for_hours() {
    for jumps in [[HOURS, 0], [-(900 * SECOND as i64), 0], [HOURS, -(900 * SECOND as i64)]] {
        for (machine, class, estimator) in machines() {
            let (mut at, mut moments) = (0, Vec::new());
            read_through(&machine, class, |part| {
                if at < 2 && part >= 20 * (at as u64 + 1) {
                    machine.clock.set(jumps[at]);
                    moments.push(machine.passed());
                    at += 1;
                }
            });
            let what = format!("{} {jumps:?}", estimator.name());
            let seconds = machine.passed() / SECOND;
            assert!((WHOLE - 2..=WHOLE + 2 * WAIVED).contains(&seconds), "{what}: {seconds} s");
            assert_held(&machine, 0, moments[0], &what);
            assert_held(&machine, moments[0], moments[1], &what);
            assert_held(&machine, moments[1], u64::MAX, &what);
        }
    }
}

#[test]
fn a_wait_is_not_prolonged_when_the_clock_is_set_back() {
    let (machine, class) = (Machine::new(WHOLE * RATE, true), class(RATE));
    let books = Books::new();
    // The first sleep is as long as it should be, but then the clock shows less than before.
    machine.set_back_at.set(Some((10 * SECOND, -(900 * SECOND as i64))));
    let regulator = Regulator::new(&machine, class, &books);
    crate::tests::simulation::read_with(&machine, &regulator, 64 << 10);
    let seconds = machine.passed() / SECOND;
    assert!((WHOLE - 2..=WHOLE + WAIVED + 2).contains(&seconds), "{seconds} s");
    assert!(books.waited() <= machine.passed(), "{} ns waited", books.waited());
}

#[test]
fn counters_that_lie_for_a_while_lose_no_more_than_they_hide() {
    let lies: [(&str, Told, u64); 5] = [
        ("it was misread as enormous", |_| u64::MAX, 20 * RATE),
        ("it jumped ahead", |truth| truth + (50 << 20), 0),
        ("it ran backwards", |truth| truth.saturating_sub(50 << 20), 50 << 20),
        ("it begins anew", |truth| truth % (10 << 20), 0),
        ("it is not there", |_| 0, 20 * RATE),
    ];
    for (what, lie, hidden) in lies {
        for (machine, class, estimator) in machines() {
            let mut moments = Vec::new();
            read_through(&machine, class, |part| {
                if moments.is_empty() && part >= 20 {
                    machine.told.set(lie);
                    moments.push(machine.passed());
                } else if moments.len() == 1 && part >= 40 {
                    machine.told.set(TRUTH);
                    moments.push(machine.passed());
                }
            });
            let what = format!("{}: {what}", estimator.name());
            let seconds = machine.passed() / SECOND;
            // What begins anew hides all but its first ten.
            let hidden = if hidden == 0 { 20 * RATE } else { hidden };
            let least = WHOLE - (hidden + RATE) / RATE - 1;
            assert!((least..=WHOLE + 2 * WAIVED + 10).contains(&seconds), "{what}: {seconds} s");
            assert_held(&machine, 0, moments[0], &what);
            assert_held(&machine, moments[1] + 2 * SECOND, u64::MAX, &what);
            if estimator == Estimator::Predict {
                assert_held(&machine, 0, u64::MAX, &what);
            }
        }
    }
}

/// Reads until so much time has passed.
fn read_until(
    machine: &Machine,
    regulator: &Regulator<'_, Machine>,
    (thread, file): (&Thread, &File),
    end: u64,
) {
    while machine.passed() < end {
        assert!(read(machine, regulator, thread, file, 64 << 10) > 0, "a file that long");
    }
}

/// Bytes that were read between two moments.
fn read_between(machine: &Machine, from: u64, to: u64) -> u64 {
    machine.log.borrow().iter().filter(|one| (from..to).contains(&one.0)).map(|one| one.1).sum()
}

#[test]
fn disk_counters_that_lie_neither_hold_a_lone_process_nor_hide_others_for_long() {
    const TENTH: u64 = SECOND / 10;
    let lies: [(&str, Counted); 6] = [
        ("they run backwards", |truth| Some((1 << 50) - truth)),
        ("they stand still", |_| Some(1 << 30)),
        ("the disk vanishes", |_| None),
        ("they begin anew", |truth| Some(truth % (10 << 20))),
        ("they are enormous", |_| Some(u64::MAX)),
        ("they jump ahead", |truth| Some(truth + (1 << 40))),
    ];
    for (what, lie) in lies {
        let (machine, books) = (Machine::new(8 << 30, true), Books::new());
        let (class, board) = yielding_class(RATE);
        // 200 MB/s from 1.4 s to 3 s.
        machine.others.set(|now| (now.clamp(14 * TENTH, 30 * TENTH) - 14 * TENTH) / 5);
        let regulator = Regulator::new(&machine, class, &books).with_board(Some(board));
        let (thread, file) = (Thread::default(), File::new());
        let read_on = |end| read_until(&machine, &regulator, (&thread, &file), end);
        read_on(2 * TENTH);
        machine.counted.set(lie);
        read_on(5 * TENTH);
        machine.counted.set(Some);
        read_on(45 * TENTH);
        let longest = machine.longest_sleep.get();
        assert!(longest <= SECOND, "{what}: held for {longest} ns");
        let alone = read_between(&machine, 11 * TENTH, 14 * TENTH);
        assert!(alone > 200 << 20, "{what}: full speed soon after: {alone}");
        // What was charged meanwhile and seen nowhere, 64 MiB at most, explains the others' first.
        let held = read_between(&machine, 20 * TENTH, 30 * TENTH);
        assert!(held < 11 * RATE / 10, "{what}: the others are seen: {held}");
        let again = read_between(&machine, 42 * TENTH, 45 * TENTH);
        assert!(again > 200 << 20, "{what}: full speed again: {again}");
    }
}

#[test]
fn writes_survive_counters_and_clocks_that_lie() {
    let lies: [Told; 4] = [|_| u64::MAX, |truth| truth / 2, |truth| truth % (1 << 20), |_| 0];
    for lie in lies {
        for (machine, class, estimator) in machines() {
            let (books, thread, file) = (Books::new(), Thread::default(), File::new());
            let regulator = Regulator::new(&machine, class, &books);
            for step in 0..400 {
                machine.told.set(if step % 100 < 50 { TRUTH } else { lie });
                machine.clock.set(if step % 80 < 40 { 0 } else { HOURS });
                machine.cancelled.set(if step % 30 == 29 { u64::MAX } else { 0 });
                if step % 16 == 0 {
                    thread.deletions.note_removal();
                }
                write(&regulator, &machine, &thread, &file, 64 << 10);
            }
            regulator.look_at_end(&thread);
            // 25 MiB: 5 s, and each lie and each jump may cost what is not waived.
            let seconds = machine.passed() / SECOND;
            assert!(seconds <= 5 + 14 * WAIVED, "{}: {seconds} s", estimator.name());
        }
    }
}

#[test]
fn a_wait_that_no_limit_explains_ends() {
    let (machine, class) = (Machine::new(WHOLE * RATE, true), class(RATE));
    let books = Books::new();
    let regulator = Regulator::new(&machine, class, &books);
    let begun = machine.now();
    regulator.wait_until_paid(Moment::NEVER);
    let waited = machine.now().since(begun).0 / SECOND;
    assert!((WAIVED - 1..=WAIVED + 1).contains(&waited), "{waited} s");
    // Nothing is limited any more.
    class.set_limits(machine.now(), &Limits::UNLIMITED);
    let begun = machine.now();
    regulator.wait_until_paid(Moment::NEVER);
    assert_eq!(machine.now(), begun);
}

#[test]
fn a_wait_for_the_network_that_no_limit_explains_ends() {
    let (machine, class) = (Machine::new(WHOLE * RATE, true), class(RATE));
    let limit = Limits::UNLIMITED.with(Resource::NetUp, Rate::per_second(RATE));
    class.set_limits(machine.now(), &limit);
    let books = Books::new();
    let regulator = Regulator::new(&machine, class, &books);
    let begun = machine.now();
    regulator.hold(regulator.limits(), Moment::NEVER);
    let waited = machine.now().since(begun).0 / SECOND;
    assert!((WAIVED - 1..=WAIVED + 1).contains(&waited), "{waited} s");
    // Nothing is limited any more.
    class.set_limits(machine.now(), &Limits::UNLIMITED);
    let begun = machine.now();
    regulator.hold(regulator.limits(), Moment::NEVER);
    assert_eq!(machine.now(), begun);
}
