//! What is deleted or rewritten before it reaches the disk is credited.

use discnice_ledger::Direction;
use discnice_ledger::member::Books;

use super::{machine, written::class_written};
use crate::tests::simulation::{class, write};
use crate::{File, Host, Regulator, Thread};

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
fn deleted_data_is_credited_where_no_thread_waits() {
    let (machine, books, class) = (machine(0), Books::new(), class(u64::MAX));
    let (regulator, thread, file) =
        (Regulator::new(&machine, class, &books), Thread::default(), File::new());
    for round in 0..100 {
        machine.seek(round * (12 << 10));
        write(&regulator, &machine, &thread, &file, 10 << 10);
        thread.deletions.note_removal();
        machine.cancelled.set(class_written(&machine));
    }
    regulator.look_at_end(&thread);
    assert_eq!((class.total().total(), machine.questions.get()), (0, 1));
}

#[test]
fn a_writer_that_no_longer_deletes_what_it_wrote_is_held_soon() {
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
    let allowed = f64::from(1 << 20) * machine.now().since(before.0).as_secs_f64() + 300e3;
    assert!(bytes as f64 <= allowed, "{bytes} of {allowed}");
}
