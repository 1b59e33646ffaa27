//! Calls that copy inside the kernel.

use discnice_ledger::Class;
use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Decision};
use discnice_regulator::{File, Flow};

use super::writes::{in_pieces, size_is_limited};
use super::{discover, start_io};
use crate::net::transfer::{Call, transfer};
use crate::thread::local;
use crate::{engine, files};

/// A call that copies inside the kernel, from one descriptor to another; `in_order` if it reads at
/// the first one's own offset.
pub fn copy(
    from: i32,
    in_order: bool,
    to: i32,
    count: usize,
    piece: impl Fn(usize) -> isize,
) -> isize {
    let files = (engine::class(), files::get(from), files::get(to));
    let (Some(class), Some(source), Some(target)) = files else { return piece(count) };
    let (from, to) = ((from, source), (to, target));
    let copied = |length| copy_files(class, from, in_order, to, length, &piece);
    match flow(from, to) {
        Some((fd, flow)) => {
            let call = Call { fd, flow, count, flags: 0, whole: false };
            transfer(call, |_, length| copied(length))
        }
        None => copied(count),
    }
}

/// Tells which of two ends is a socket, and the direction in which bytes move there.
fn flow(from: (i32, &File), to: (i32, &File)) -> Option<(i32, Flow)> {
    let is_socket = |(fd, file)| {
        discover(fd, file);
        File::is_socket(file)
    };
    if is_socket(to) {
        Some((to.0, Flow::Up))
    } else {
        is_socket(from).then_some((from.0, Flow::Down))
    }
}

/// splice(2): one end is a pipe, and its buffer bounds the call. `piece(length, flags)` makes the real call for a part.
pub fn splice(
    from: i32,
    to: i32,
    count: usize,
    flags: u32,
    piece: impl Fn(usize, u32) -> isize,
) -> isize {
    if let (Some(source), Some(target)) = (files::get(from), files::get(to))
        && let Some((fd, flow)) = flow((from, source), (to, target))
    {
        let impatient = flags & libc::SPLICE_F_NONBLOCK != 0;
        let waits = if impatient { libc::MSG_DONTWAIT } else { 0 };
        let call = Call { fd, flow, count, flags: waits, whole: false };
        return transfer(call, |done, length| {
            // The kernel waits for the pipe only where nothing has been moved yet.
            let more = if done > 0 { libc::SPLICE_F_NONBLOCK } else { 0 };
            piece(length, flags | more)
        });
    }
    start_io(|| piece(count, flags))
}

/// The disk's part of it.
fn copy_files(
    class: &Class,
    (from, source): (i32, &File),
    in_order: bool,
    (to, target): (i32, &File),
    count: usize,
    piece: &impl Fn(usize) -> isize,
) -> isize {
    let local = local();
    if source.is_other() && target.is_other() {
        let result = piece(count);
        local.thread.proceed(Why::Elsewhere, result);
        return result;
    }
    let Some(regulator) = engine::regulator() else { return piece(count) };
    files::will_be_shaped(from);
    files::will_be_known(to);
    let (source, target) = ((from, source), (to, target));
    let one = |_, length: usize| {
        let thread = &local.thread;
        let ticket = regulator.admit_copy(thread, source, in_order, target, length as u64);
        let result = piece(length);
        thread.count_piece(result);
        regulator.complete_copy(thread, target, ticket, result);
        result
    };
    let may_be_cut = || !class.is_free() && !size_is_limited() && !are_one_file(from, to);
    let result = match decision::pieces(count as u64, regulator.copy_piece(), may_be_cut) {
        Decision::Split(piece) => in_pieces(count, piece, one),
        _ => one(0, count),
    };
    local.thread.count_pieces();
    result
}

/// Returns true if both are one file: the kernel refuses ranges that overlap, and ends a copy at
/// the size that the file had before, so it must see all of them.
fn are_one_file(left: i32, right: i32) -> bool {
    let identity = |fd| discnice_sys::file::status(fd).ok().map(|file| (file.device, file.inode));
    identity(left) == identity(right)
}
