//! Calls that write, as a whole or in pieces.

use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Decision};
use discnice_regulator::{File, Flow, Ticket};
use discnice_sys::Syscall;

use super::{discover, other};
use crate::known::Transfer;
use crate::net::told;
use crate::net::transfer::Call;
use crate::thread::{Local, local};
use crate::{engine, files};

//= rate-windows/3.2-hooks
/// A call that writes `count` bytes from the program's memory. `piece(done, length)` makes the
/// real call for a part; `whole` says that it must be made as one.
#[inline(always)]
pub fn write(
    fd: i32,
    count: usize,
    at: Option<u64>,
    whole: bool,
    piece: impl Fn(usize, usize) -> isize + Copy,
) -> isize {
    let (Some(class), Some(file)) = (engine::class(), files::get(fd)) else {
        return piece(0, count);
    };
    discover(fd, file);
    let local = local();
    let call = Transfer { class, file, thread: &local.thread, flow: Flow::Up, count, at };
    match decision::write(&call) {
        Decision::Proceed(why @ Why::Unlimited) => {
            let result = piece(0, count);
            local.thread.proceed(why, result);
            if local.thread.countdown.count_unlimited(count).is_some() {
                finish_write(local, fd, file, at, result);
            }
            result
        }
        Decision::Proceed(why @ Why::Dirty) => {
            if file.is_predicted() {
                file.note_rewritten(count);
            }
            let result = piece(0, count);
            local.thread.proceed(why, result);
            if at.is_none() {
                file.moved(result);
            }
            if local.thread.writes.count_rewritten(result.max(0) as usize).is_some() {
                finish_write(local, fd, file, at, result);
            }
            result
        }
        _ if file.is_other() => {
            other(local, Call { fd, flow: Flow::Up, count, flags: 0, whole }, file, piece)
        }
        _ => slow_write(local, fd, file, count, at, whole, piece),
    }
}

#[cold]
fn finish_write(local: &Local, fd: i32, file: &File, at: Option<u64>, result: isize) {
    told::mind();
    files::will_be_known(fd);
    if let Some(regulator) = engine::regulator() {
        regulator.complete_write(&local.thread, fd, file, Ticket::FREE, at, result);
    }
}

#[cold]
#[inline(never)]
fn slow_write(
    local: &Local,
    fd: i32,
    file: &File,
    count: usize,
    at: Option<u64>,
    whole: bool,
    piece: impl Fn(usize, usize) -> isize + Copy,
) -> isize {
    let Some(regulator) = engine::regulator() else { return piece(0, count) };
    files::will_be_known(fd);
    let one = |done: usize, length: usize| {
        let at = at.map(|at| at + done as u64);
        let ticket = regulator.admit_write(&local.thread, fd, file, at, length as u64);
        let result = piece(done, length);
        if at.is_none() {
            file.moved(result);
        }
        local.thread.count_piece(result);
        // What a write costs shows in no clock: it is charged when the page gets dirty.
        let due = ticket.is_due()
            || local.thread.writes.count(result).is_some()
            || local.thread.countdown.count(0, 0).is_some();
        if due {
            regulator.complete_write(&local.thread, fd, file, ticket, at, result);
        }
        result
    };
    let may_be_cut = || {
        // A call that is one message must be known as such before.
        regulator.classify(fd, file);
        let must_stay = whole || file.is_other() || appends(fd) || size_is_limited();
        !must_stay && !discnice_sys::file::takes_commands(fd)
    };
    let result = match decision::pieces(count as u64, regulator.write_piece(), may_be_cut) {
        Decision::Split(piece) => in_pieces(count, piece, one),
        _ => one(0, count),
    };
    local.thread.count_pieces();
    result
}

/// Returns true if concurrent writers rely on each write being one call.
fn appends(fd: i32) -> bool {
    discnice_sys::file::flags(fd).is_ok_and(|flags| flags & libc::O_APPEND != 0)
}

/// Returns true if file sizes are limited (`RLIMIT_FSIZE`): a call that crosses the limit ends
/// short, but one that begins there raises a signal, so such a call may not be split.
pub(super) fn size_is_limited() -> bool {
    let mut limit = [u64::MAX; 2];
    let (own, resource) = (0, libc::RLIMIT_FSIZE as usize);
    let arguments = [own, resource, 0, (&raw mut limit) as usize, 0, 0];
    // SAFETY: the kernel writes one struct rlimit64, which is two numbers.
    let asked = unsafe { discnice_sys::syscall(Syscall(libc::SYS_prlimit64, arguments)) };
    asked.is_ok() && limit[0] != u64::MAX
}

/// Makes a long call as several, as the kernel itself would answer one that it could not finish:
/// what was done is the result, and an error only if nothing was.
pub(super) fn in_pieces(count: usize, piece: u64, one: impl Fn(usize, usize) -> isize) -> isize {
    let piece = usize::try_from(piece).unwrap_or(usize::MAX).max(1);
    let mut done = 0;
    while done < count {
        let length = piece.min(count - done);
        let before = crate::real::errno();
        let result = one(done, length);
        if result < 0 && done > 0 {
            crate::real::set_errno(before);
            return done as isize;
        }
        if result < 0 {
            return result;
        }
        done += result as usize;
        if (result as usize) < length {
            break;
        }
    }
    done as isize
}
