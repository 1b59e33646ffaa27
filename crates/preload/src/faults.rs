//! Mapped files, of which each page fault would read a whole read-ahead window of the device.
//!
//! Where that is a burst under the class's limit, a mapping is advised `MADV_RANDOM`: a fault then
//! reads one page (mm/filemap.c, `do_sync_mmap_readahead`: `VM_RAND_READ`). A table remembers
//! which mappings we advised, so that they get the kernel's read-ahead back when the limit is
//! lifted; one that finds no place in it is left alone. The program's own `MADV_RANDOM` is the same; that it
//! reads in order (`MADV_SEQUENTIAL`, which would read by windows again) is what it gets back then.
//!
//! The table is plain memory: a forked child, which has the same mappings, has the same table. An
//! entry may be stale, of a mapping that went unseen: giving advice back there only means that
//! the kernel reads ahead again.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use discnice_regulator::{Linux, Regulator};
use discnice_sys::{file, memory};

use crate::engine;
use crate::thread::local;

/// Mappings that are remembered.
const PLACES: usize = 512;
/// A fault in a smaller file reads no more than this.
const SMALL: u64 = 64 << 10;

/// Longest private copy taken for an image, in bytes. A longer one is data, of which few pages may
/// be wanted.
const IMAGE: usize = 32 << 20;

/// `start` says what an entry is: none, being written, or where a mapping starts.
const NONE: usize = 0;
const BUSY: usize = 1;

struct Place {
    start: AtomicUsize,
    length: AtomicUsize,
    /// The program reads it in order, as it said.
    in_order: AtomicBool,
}

impl Place {
    const fn new() -> Self {
        Self {
            start: AtomicUsize::new(NONE),
            length: AtomicUsize::new(0),
            in_order: AtomicBool::new(false),
        }
    }

    /// Returns the start of its mapping, if it has one that touches this range.
    fn touching(&self, start: usize, length: usize) -> Option<usize> {
        let (begin, end) = (self.start.load(Ordering::Acquire), start.saturating_add(length));
        let own_end = begin.saturating_add(self.length.load(Ordering::Relaxed));
        (begin > BUSY && begin < end && start < own_end).then_some(begin)
    }

    /// Gives the place up, unless another thread was first.
    fn leave(&self, begin: usize) -> bool {
        self.start.compare_exchange(begin, NONE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

fn advise(begin: usize, length: usize, advice: i32) {
    let _ = memory::advise(core::ptr::without_provenance_mut(begin), length, advice);
}

static PLACE: [Place; PLACES] = [const { Place::new() }; PLACES];

/// Places from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);

fn used() -> impl Iterator<Item = &'static Place> {
    PLACE.iter().take(USED.load(Ordering::Acquire))
}

/// A file is about to be mapped. What will be read at once is brought in before.
pub fn before_map(
    start: *mut c_void,
    length: usize,
    protection: i32,
    flags: i32,
    fd: i32,
    at: i64,
) {
    if flags & libc::MAP_FIXED != 0 {
        forget(start, length);
    }
    if (flags & libc::MAP_POPULATE != 0 || is_relocated(length, protection, flags))
        && let (Some(regulator), Ok(at)) = (bursting(), u64::try_from(at))
        && let Ok(status) = file::status(fd)
        && status.regular
    {
        let end = at.saturating_add(length as u64).min(status.size);
        regulator.bring_in(&local().thread, fd, at..end, false);
    }
}

/// Returns true if a mapping is likely to be touched from end to end at once: a private writable
/// copy, as runtimes map an image of their heap and code that they relocate (Java's class data
/// archive). `MAP_POPULATE` asks for just that.
fn is_relocated(length: usize, protection: i32, flags: i32) -> bool {
    length <= IMAGE
        && flags & libc::MAP_TYPE == libc::MAP_PRIVATE
        && protection & libc::PROT_WRITE != 0
}

/// A file has been mapped.
pub fn mapped(start: *mut c_void, length: usize, fd: i32) {
    if bursting().is_some()
        && file::status(fd).is_ok_and(|status| status.regular && status.size > SMALL)
    {
        shape(start, length);
    }
}

/// The program has advised the kernel to read ahead of faults in a range; returns whether those are made page by page all the
/// same, as what is ours of it still is a burst.
pub fn advised(start: *mut c_void, length: usize, in_order: bool) -> bool {
    if any() && bursting().is_none() {
        forget(start, length);
        return false;
    }
    let mut ours = false;
    for place in used() {
        if let Some(begin) = place.touching(start as usize, length) {
            place.in_order.store(in_order, Ordering::Relaxed);
            advise(begin, place.length.load(Ordering::Relaxed), libc::MADV_RANDOM);
            ours = true;
        }
    }
    ours
}

fn shape(start: *mut c_void, length: usize) {
    if remember(start as usize, length) && memory::advise(start, length, libc::MADV_RANDOM).is_err()
    {
        forget(start, length);
    }
}

/// The regulator, while page faults are a burst.
fn bursting() -> Option<Regulator<'static, Linux>> {
    engine::regulator().filter(Regulator::faults_burst)
}

fn remember(start: usize, length: usize) -> bool {
    for (number, place) in PLACE.iter().enumerate() {
        let taken =
            place.start.compare_exchange(NONE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            place.length.store(length, Ordering::Relaxed);
            place.in_order.store(false, Ordering::Relaxed);
            place.start.store(start, Ordering::Release);
            USED.fetch_max(number + 1, Ordering::AcqRel);
            return true;
        }
    }
    false
}

/// Returns true if the mapping at `start` is faulted page by page because we advised so.
pub fn is_ours(start: usize) -> bool {
    used().any(|place| place.start.load(Ordering::Acquire) == start)
}

/// A range is unmapped or replaced, or the program advises the same; returns whether any of it was ours.
pub fn forget(start: *mut c_void, length: usize) -> bool {
    let mut any = false;
    for place in used() {
        let begin = place.touching(start as usize, length);
        any |= begin.is_some_and(|begin| place.leave(begin));
    }
    any
}

/// A mapping has been moved or resized by mremap(2); `ours` says what [`forget`] said before.
pub fn moved(ours: bool, start: *mut c_void, length: usize) {
    if ours && !remember(start as usize, length) {
        // No later call would undo the advice.
        let _ = memory::advise(start, length, libc::MADV_NORMAL);
    }
}

/// Returns true if there may be mappings that are faulted page by page. No call reports their
/// faults, so every call that is seen is an occasion to look.
#[inline(always)]
pub fn any() -> bool {
    USED.load(Ordering::Relaxed) > 0
}

/// Gives the kernel's read-ahead back if faults are no burst any more.
#[inline]
pub fn check() {
    if any() && engine::class().is_some() && bursting().is_none() {
        give_back();
    }
}

/// Gives the kernel's read-ahead back to all mappings.
#[cold]
pub fn give_back() {
    for place in used() {
        let Some(begin) = place.touching(0, usize::MAX) else { continue };
        // Between these two: what was read before could be of another mapping, and so could what is read behind.
        let length = place.length.load(Ordering::Relaxed);
        let in_order = place.in_order.load(Ordering::Relaxed);
        if place.leave(begin) {
            advise(begin, length, if in_order { libc::MADV_SEQUENTIAL } else { libc::MADV_NORMAL });
        }
    }
}
