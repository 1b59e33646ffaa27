//! A program that is about to be executed is brought in smoothly.

use discnice_ledger::member::Books;
use discnice_units::{Moment, Nanos, Rate};

use super::{RATE, machine};
use crate::tests::simulation::{class, most};
use crate::{Host, Regulator, Thread, Ticket};

#[test]
fn a_cached_program_does_not_wait() {
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
    let seconds = machine.now().since(Moment(1_000_000_000_000)).as_secs_f64();
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
