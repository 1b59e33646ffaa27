//! Calls that a program wants not to wait (`RWF_NOWAIT`).

use discnice_ledger::Direction;
use discnice_ledger::trace::Why;
use discnice_regulator::{File, Flow};
use discnice_sys::cycles;

use super::{VECTOR, discover};
use crate::net::transfer::{Call, transfer};
use crate::thread::local;
use crate::{engine, faults, files, real};

/// A call that must not wait: it is made at once, and charged when the account is looked at next.
///
/// While the class owes, one that would go to the disk is refused, as the kernel refuses it where it would wait: a
/// program that tries again, or makes another thread wait, is held there.
pub fn at_once(fd: i32, flow: Flow, at: Option<u64>, real: impl Fn() -> isize) -> isize {
    let (Some(class), Some(file)) = (engine::class(), files::get(fd)) else { return real() };
    discover(fd, file);
    if file.is_socket() {
        let call = Call { fd, flow, count: VECTOR, flags: libc::MSG_DONTWAIT, whole: true };
        return transfer(call, |_, _| real());
    }
    if !class.is_calm() && is_refused(fd, file, flow) {
        real::set_errno(libc::EAGAIN);
        return -1;
    }
    let thread = &local().thread;
    let before = cycles::now();
    let result = real();
    if at.is_none() {
        file.moved(result);
    }
    let cycles = cycles::now().wrapping_sub(before);
    thread.proceed(Why::Unexamined, result);
    let written = flow == Flow::Up && thread.writes.count(result).is_some();
    if written | thread.countdown.count(cycles, result).is_some() {
        look();
    }
    result
}

/// Returns true if the class owes for what such a call would move: not what it finds in the page cache.
#[cold]
fn is_refused(fd: i32, file: &File, flow: Flow) -> bool {
    files::will_be_known(fd);
    let direct = || discnice_sys::file::flags(fd).is_ok_and(|flags| flags & libc::O_DIRECT != 0);
    let waits = |direction| {
        engine::regulator().is_some_and(|regulator| regulator.would_wait(fd, file, direction))
    };
    match flow {
        Flow::Up => waits(Direction::Write),
        Flow::Down => waits(Direction::Read) && direct(),
    }
}

#[cold]
fn look() {
    faults::check();
    if let Some(regulator) = engine::regulator() {
        regulator.look(&local().thread);
    }
}
