//! Programs that read and write on the simulated machine, and the classes that they are in.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;

use discnice_ledger::member::Books;
use discnice_ledger::policy::{Limits, Resource, When};
use discnice_ledger::{Board, Class};
use discnice_units::{Moment, Rate};

use super::Machine;
use crate::{File, Regulator, Thread};

/// A class of its own with a limit on the whole.
pub fn class(rate: u64) -> &'static Class {
    let layout = Layout::from_size_align(Class::SIZE, 4096).expect("a page-aligned layout");
    let class = leaked(layout);
    let limits = Limits::UNLIMITED.with(Resource::Total, Rate::per_second(rate));
    class.set_limits(Moment::FIRST, &limits);
    class
}

#[allow(unsafe_code, reason = "a class lives in raw memory")]
fn leaked(layout: Layout) -> &'static Class {
    // SAFETY: the layout's size is not zero; the memory is fresh, large enough and never freed.
    unsafe {
        let start = NonNull::new(alloc_zeroed(layout)).expect("memory");
        Class::create(start, layout.size(), 1, b"simulation", 0).expect("a class")
    }
}

/// A class of its own that is held to a rate while others are busy, and its user's board.
pub fn yielding_class(rate: u64) -> (&'static Class, &'static Board) {
    let layout = Layout::from_size_align(Class::SIZE, 4096).expect("a page-aligned layout");
    let class = leaked(layout);
    let limits =
        Limits::UNLIMITED.with(Resource::Total, Rate::per_second(rate)).with_when(When::Busy);
    class.set_limits(Moment::FIRST, &limits);
    (class, leaked_board())
}

#[allow(unsafe_code, reason = "a board lives in raw memory")]
fn leaked_board() -> &'static Board {
    let layout = Layout::from_size_align(Board::SIZE, 4096).expect("a page-aligned layout");
    // SAFETY: as for a class.
    unsafe {
        let start = NonNull::new(alloc_zeroed(layout)).expect("memory");
        Board::create(start, layout.size()).expect("a board")
    }
}

/// Reads the file to its end as a program does, by calls of `count` bytes.
pub fn read_all(machine: &Machine, class: &Class, books: &Books, count: u64) {
    read_with(machine, &Regulator::new(machine, class, books), count);
}

/// Reads the whole file in calls of `count` bytes through the given regulator.
pub fn read_with(machine: &Machine, regulator: &Regulator<'_, Machine>, count: u64) {
    let (thread, file) = (Thread::default(), File::new());
    while read(machine, regulator, &thread, &file, count) > 0 {}
}

/// One such call, at the file's position.
pub fn read(
    machine: &Machine,
    regulator: &Regulator<'_, Machine>,
    thread: &Thread,
    file: &File,
    count: u64,
) -> isize {
    let ticket = regulator.admit_read(thread, 3, file, count as usize, None);
    let before = machine.now.get();
    let result = machine.read(count);
    let cycles = 3 * (machine.now.get() - before);
    if ticket.read > 0
        || thread.countdown.count(cycles, result).is_some() && (ticket.look || !file.is_other())
    {
        regulator.complete_read(thread, 3, file, ticket, None, result);
    }
    result
}

/// Writes `count` bytes at the file's position, as one call.
pub fn write(
    regulator: &Regulator<'_, Machine>,
    machine: &Machine,
    thread: &Thread,
    file: &File,
    count: u64,
) {
    let ticket = regulator.admit_write(thread, 3, file, None, count);
    let result = machine.write(count);
    if ticket.write > 0 || thread.writes.count(result).is_some() {
        regulator.complete_write(thread, 3, file, ticket, None, result);
    }
}

/// The most bytes in any window of `width` nanoseconds.
pub fn most(log: &[(u64, u64)], width: u64) -> u64 {
    log.iter()
        .map(|&(from, _)| {
            log.iter().filter(|e| e.0 >= from && e.0 < from + width).map(|e| e.1).sum()
        })
        .max()
        .unwrap_or(0)
}
