//! The shapes that calls have. Each is decode, decide, real call, and each has a short way for
//! the call that costs the disk nothing.

mod names;

use core::ffi::c_void;

use discnice_ledger::Class;
use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Decision};
use discnice_regulator::{Access, File, Flow, Linux, Regulator, Ticket};
use discnice_sys::{Syscall, cycles};

use crate::known::{Named, Transfer};
use crate::net::pacing;
use crate::net::transfer::{Call, transfer};
use crate::thread::{Local, local};
use crate::{engine, faults, files};

use names::{Object, metadata_of};
pub use names::{
    change, delete, list, look, metadata, name, open, open_named, opened_to_read, operation,
    truncate,
};

/// One call moves at most so many bytes (write(2), NOTES; `MAX_RW_COUNT` in the kernel's
/// include/linux/fs.h).
pub const MOVED_MAX: usize = 0x7fff_f000;
/// End of a program's memory: 47 bits (x86-64) or 48 (arm64), unless one asks for more.
const MEMORY_END: usize = if cfg!(target_arch = "x86_64") { 1 << 47 } else { 1 << 48 };

/// Returns true if a buffer ends outside the address space. The kernel refuses such a call as a
/// whole, however much of the buffer is there, so it must see all of it.
#[inline(always)]
pub fn is_beyond_memory(buffer: *const c_void, count: usize) -> bool {
    (buffer as usize).checked_add(count).is_none_or(|end| end > MEMORY_END)
}

//= discnice/5.1-preload
/// A call that reads into the program's memory, at the descriptor's offset or at `at`.
/// `piece(done, length)` makes the real call for a part; `whole` says that it must be made as one.
/// Only what comes from a network is read in parts.
#[inline(always)]
pub fn read(
    fd: i32,
    count: usize,
    at: Option<u64>,
    whole: bool,
    piece: impl Fn(usize, usize) -> isize + Copy,
) -> isize {
    let real = move || piece(0, count);
    let (Some(class), Some(file)) = (engine::class(), files::get(fd)) else { return real() };
    discover(fd, file);
    let local = local();
    let call = Transfer { class, file, thread: &local.thread, flow: Flow::Down, count, at };
    match decision::read(&call) {
        Decision::Proceed(why @ Why::Unlimited) => {
            let result = real();
            local.thread.proceed(why, result);
            if local.thread.countdown.count_unlimited(count).is_some() {
                finish_read(local, fd, file, at, result);
            }
            result
        }
        Decision::Proceed(why @ Why::Cached) => {
            let before = cycles::now();
            let result = real();
            if at.is_none() && (file.is_predicted() || class.predicts()) {
                file.moved(result);
            }
            let cycles = cycles::now().wrapping_sub(before);
            local.thread.proceed(why, result);
            if local.thread.countdown.count(cycles, result).is_some() {
                finish_read(local, fd, file, at, result);
            }
            result
        }
        _ if file.is_other() => {
            other(local, Call { fd, flow: Flow::Down, count, flags: 0, whole }, file, piece)
        }
        _ => slow_read(local, fd, file, count, at, real),
    }
}

/// A call on a descriptor that cannot reach a disk.
#[inline(always)]
fn other(
    local: &Local,
    call: Call,
    file: &File,
    piece: impl Fn(usize, usize) -> isize + Copy,
) -> isize {
    local.thread.outcomes.because(Why::Elsewhere);
    if local.count_other().is_some() {
        local.others.set(0);
        reclassify(call.fd, file);
    }
    pay_for_faults();
    if file.is_socket() {
        return transfer(call, piece);
    }
    let result = piece(0, call.count);
    local.thread.count_admitted(result);
    result
}

/// Finds out what a descriptor is of which nothing is known, if it may be a socket with traffic that
/// must be regulated.
#[inline(always)]
fn discover(fd: i32, file: &File) {
    if !file.is_classified() && engine::minds_traffic() {
        classify(fd, file);
    }
}

#[cold]
fn classify(fd: i32, file: &File) {
    if let Some(regulator) = engine::regulator() {
        regulator.classify(fd, file);
    }
}

#[cold]
fn reclassify(fd: i32, file: &File) {
    if let Some(regulator) = engine::regulator() {
        regulator.reclassify(fd, file);
        if file.is_blank() {
            // It is closed. With nothing known about it, no later call takes it for a socket.
            files::forget(fd);
        }
    }
}

/// Waits until what page faults have read is paid for, on a call that costs nothing itself: a program
/// that scans a mapping may make no others.
#[inline(always)]
pub fn pay_for_faults() {
    if faults::any() {
        settle_faults();
    }
}

#[cold]
#[inline(never)]
fn settle_faults() {
    if let Some(regulator) = engine::regulator() {
        regulator.pay_for_faults(&local().thread);
    }
}

#[cold]
fn finish_read(local: &Local, fd: i32, file: &File, at: Option<u64>, result: isize) {
    faults::check();
    if let Some(regulator) = engine::regulator() {
        regulator.complete_read(&local.thread, fd, file, Ticket::FREE, at, result);
    }
}

#[cold]
#[inline(never)]
fn slow_read(
    local: &Local,
    fd: i32,
    file: &File,
    count: usize,
    at: Option<u64>,
    real: impl Fn() -> isize + Copy,
) -> isize {
    let Some(regulator) = engine::regulator() else { return real() };
    files::will_be_shaped(fd);
    let ticket = regulator.admit_read(&local.thread, fd, file, count, at);
    let before = cycles::now();
    let result = real();
    let cycles = cycles::now().wrapping_sub(before);
    if at.is_none() {
        file.moved(result);
    }
    local.thread.count_admitted(result);
    // A reservation must be settled; a stream's own reads are waits for what is paid already.
    if ticket.is_due()
        || local.thread.countdown.count(cycles, result).is_some()
            && (ticket.look || !file.is_other())
    {
        regulator.complete_read(&local.thread, fd, file, ticket, at, result);
    }
    result
}

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
    pacing::mind();
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
    let may_be_cut = || !(whole || file.is_other() || appends(fd) || size_is_limited());
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
fn size_is_limited() -> bool {
    let mut limit = [u64::MAX; 2];
    let (own, resource) = (0, libc::RLIMIT_FSIZE as usize);
    let arguments = [own, resource, 0, (&raw mut limit) as usize, 0, 0];
    // SAFETY: the kernel writes one struct rlimit64, which is two numbers.
    let asked = unsafe { discnice_sys::syscall(Syscall(libc::SYS_prlimit64, arguments)) };
    asked.is_ok() && limit[0] != u64::MAX
}

/// Makes a long call as several, as the kernel itself would answer one that it could not finish:
/// what was done is the result, and an error only if nothing was.
fn in_pieces(count: usize, piece: u64, one: impl Fn(usize, usize) -> isize) -> isize {
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

/// splice(2): one end is a pipe, and its buffer bounds the call.
pub fn splice(
    from: i32,
    to: i32,
    count: usize,
    flags: u32,
    piece: impl Fn(usize) -> isize,
) -> isize {
    if let (Some(source), Some(target)) = (files::get(from), files::get(to))
        && let Some((fd, flow)) = flow((from, source), (to, target))
    {
        let impatient = flags & libc::SPLICE_F_NONBLOCK != 0;
        let flags = if impatient { libc::MSG_DONTWAIT } else { 0 };
        let call = Call { fd, flow, count, flags, whole: false };
        return transfer(call, |_, length| piece(length));
    }
    start_io(|| piece(count))
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

/// A call that makes a file last.
#[inline(always)]
pub fn sync(fd: i32, real: impl FnOnce() -> i32) -> i32 {
    let result = metadata(real);
    let Some(file) = files::get(fd).filter(|_| result == 0) else { return result };
    if file.is_predicted()
        && let Some(regulator) = engine::regulator()
    {
        regulator.synced(file);
    }
    // Our own write-back has taken the answer that this call would have got.
    file.take_owed_error().map_or(result, |error| {
        crate::real::set_errno(error);
        -1
    })
}

/// A call that moves a descriptor's offset, and returns it.
#[inline(always)]
pub fn seek(fd: i32, real: impl FnOnce() -> i64) -> i64 {
    let result = real();
    if let Some(file) = files::get(fd)
        && file.is_predicted()
    {
        file.set_position(u64::try_from(result).ok());
    }
    result
}

/// A call that starts I/O of unknown size: it waits for what the class owes.
pub fn start_io<T>(real: impl FnOnce() -> T) -> T {
    let Some(regulator) = engine::regulator() else { return real() };
    let thread = &local().thread;
    match decision::start(&Named { thread }) {
        Decision::Proceed(why) => thread.outcomes.because(why),
        _ => {
            thread.outcomes.because(Why::NothingOwed);
            regulator.wait_for_debt();
        }
    }
    let result = real();
    thread.count_pieces();
    regulator.look(thread);
    result
}

/// Starts I/O of unknown size on a file that another thread or the kernel will read or write for
/// the program. The descriptor is shaped first, as the kernel's read-ahead meanwhile would be
/// noticed too late.
pub fn start_io_on<T>(fd: i32, real: impl FnOnce() -> T) -> T {
    if let (Some(regulator), Some(file)) = (engine::regulator(), files::get(fd)) {
        files::will_be_shaped(fd);
        regulator.expect_reads(fd, file);
    }
    start_io(real)
}

/// A call after which a descriptor is closed, whatever it returns.
#[inline(always)]
pub fn close<T>(fd: i32, real: impl FnOnce() -> T) -> T {
    if let Some(file) = files::get(fd) {
        if file.is_unfinished() {
            before_close(fd, file);
        }
        // Before the call: afterwards the number may be another thread's new descriptor.
        files::forget(fd);
    }
    metadata_of(Access::Changes, Object::Unknown, real)
}

#[cold]
fn before_close(fd: i32, file: &File) {
    if let Some(regulator) = engine::regulator() {
        regulator.before_close(&local().thread, fd, file);
    }
}

/// The program advised the kernel about a whole file.
pub fn advised(fd: i32, advice: discnice_regulator::Advice) {
    if let (Some(regulator), Some(file)) = (engine::regulator(), files::get(fd)) {
        let regulator: Regulator<'_, Linux> = regulator;
        regulator.program_advised(fd, file, advice);
    }
}
