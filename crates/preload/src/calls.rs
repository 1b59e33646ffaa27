//! The shapes that calls have. Each is decode, decide, real call, and each has a short way for
//! the call that costs the disk nothing.

mod at_once;
mod copies;
mod names;
mod opens;
mod removals;
mod writes;

use core::ffi::{c_ulong, c_void};

use discnice_ledger::trace::Why;
use discnice_regulator::decision::{self, Decision};
use discnice_regulator::{Access, File, Flow, Linux, Regulator, Ticket};
use discnice_sys::cycles;

use crate::known::{Named, Transfer};
use crate::net::transfer::{Call, transfer};
use crate::thread::{Local, local};
use crate::{engine, faults, files};

pub use at_once::at_once;
pub use copies::{copy, splice};
use names::{Object, metadata_of};
pub use names::{change, list, look, metadata, operation};
pub use opens::{open, open_named, opened_to_read};
pub use removals::{delete, truncate, truncate_named};
pub use writes::write;

/// One call moves at most so many bytes (write(2), NOTES; `MAX_RW_COUNT` in the kernel's
/// include/linux/fs.h).
pub const MOVED_MAX: usize = 0x7fff_f000;
/// The sum of an array of buffers is not known without reading the program's memory, which only
/// the kernel may do safely; this many bytes are assumed.
pub const VECTOR: usize = 64 << 10;
/// End of a program's memory: 47 bits (x86-64) or 48 (arm64), unless one asks for more.
const MEMORY_END: usize = if cfg!(target_arch = "x86_64") { 1 << 47 } else { 1 << 48 };

/// A request of ioctl(2): parts of files are shared if they are the same. ioctl_fideduperange(2)
pub const FIDEDUPERANGE: c_ulong = 0xc018_9436;

/// Returns true if a request of ioctl(2) shares parts of files.
pub const fn shares(request: c_ulong) -> bool {
    matches!(request, libc::FICLONE | libc::FICLONERANGE | FIDEDUPERANGE)
}

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
    files::will_be_known(fd);
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
    files::will_be_known(fd);
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

/// A call that makes a file last.
#[inline(always)]
pub fn sync(fd: i32, real: impl FnOnce() -> i32) -> i32 {
    let result = metadata(real);
    let Some(file) = files::get(fd) else { return result };
    if result == 0
        && file.is_predicted()
        && let Some(regulator) = engine::regulator()
    {
        regulator.synced(file);
    }
    told(result, file.take_owed_error())
}

/// The answer of a call that would have been told of an error of which our own write-back was told, if of any.
fn told(result: i32, owed: Option<i32>) -> i32 {
    let Some(error) = owed.filter(|_| result == 0) else { return result };
    crate::real::set_errno(error);
    -1
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
pub fn close(fd: i32, real: impl FnOnce() -> i32) -> i32 {
    settled(fd, || close_settled(real))
}

/// A call that closes a descriptor, which is [`settled`] meanwhile.
#[inline(always)]
pub fn close_settled(real: impl FnOnce() -> i32) -> i32 {
    metadata_of(Access::Changes, Object::Unknown, real)
}

/// Closes a descriptor by `real` when it is settled and forgotten.
#[inline(always)]
pub fn settled(fd: i32, real: impl FnOnce() -> i32) -> i32 {
    let Some(file) = files::get(fd) else { return real() };
    // Before the call: afterwards the number may be another thread's new descriptor.
    let owed = if file.is_unfinished() {
        finish(fd, file)
    } else {
        files::forget(fd);
        None
    };
    told(real(), owed)
}

/// Does what is left to be done with a file that is closed; returns the error that this call must return.
#[cold]
fn finish(fd: i32, file: &File) -> Option<i32> {
    if engine::is_borrowed() {
        // A child of vfork(2) closes its own descriptor: the parent, which has this memory, goes on with the file.
        return None;
    }
    if let Some(regulator) = engine::regulator() {
        regulator.before_close(&local().thread, fd, file);
    }
    let owed = file.take_owed_error();
    owed.into_iter().for_each(|error| files::hand_on(fd, error));
    files::forget(fd);
    owed
}

/// The program advised the kernel about a whole file.
pub fn advised(fd: i32, advice: discnice_regulator::Advice) {
    if let (Some(regulator), Some(file)) = (engine::regulator(), files::get(fd)) {
        let regulator: Regulator<'_, Linux> = regulator;
        files::will_be_known(fd);
        regulator.program_advised(fd, file, advice);
    }
}
