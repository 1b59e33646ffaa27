//! The program's own advice on read-ahead, beside ours.

use discnice_ledger::member::Books;

use super::{RATE, machine};
use crate::tests::simulation::class;
use crate::{Advice, File, Host, Regulator, Thread};

#[test]
fn a_lifted_limit_gives_the_programs_own_advice_back() {
    let (machine, books, class) = (machine(1 << 20), Books::new(), class(RATE));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    let _ = regulator.admit_read(&thread, 3, &file, 4096, None);
    assert!(file.is_shaped());
    regulator.program_advised(3, &file, Advice::Sequential);
    assert!(file.is_shaped(), "ours again, while the limit holds");
    class.set_limits(machine.now(), &discnice_ledger::policy::Limits::UNLIMITED);
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
    class.set_limits(machine.now(), &discnice_ledger::policy::Limits::UNLIMITED);
    let _ = regulator.admit_read(&thread, 3, &file, 4096, None);
    assert_eq!(advised(), Some(Advice::Sequential));
    regulator.program_advised(3, &file, Advice::Sequential);
    assert_eq!(advised(), None, "nothing holds any more");
}

#[test]
fn an_announced_sequential_reader_is_shaped_before_it_reads_under_a_low_limit() {
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
