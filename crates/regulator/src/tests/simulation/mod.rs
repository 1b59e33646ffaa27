//! A simulated system for tests: a clock, a page cache, a disk without limits, and an account.

mod kernel;
mod program;
mod rival;

use core::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::vec::Vec;

pub use self::program::{class, most, read, read_all, read_with, write, yielding_class};
pub use self::rival::Rival;
use crate::{Advice, File};

const PAGE: u64 = 4096;
/// The number of the file's disk.
const DISK: u64 = 8 << 32;
/// Read-ahead of the simulated kernel unless it is switched off.
const KERNEL_READ_AHEAD: u64 = 8 << 20;

/// The descriptor of a pipe; every other one is the file's.
pub const PIPE: i32 = 9;

/// A machine with one file.
#[derive(Debug)]
pub struct Machine {
    now: Cell<u64>,
    pub size: u64,
    /// Number of probes.
    pub probes: Cell<u64>,
    /// The file begins with a hole of so many bytes, whole pages.
    pub hole: Cell<u64>,
    position: Cell<u64>,
    /// The last advice about the file.
    pub advice: Cell<Option<Advice>>,
    cached: RefCell<BTreeSet<u64>>,
    dirty: RefCell<BTreeSet<u64>>,
    read: Cell<u64>,
    written: Cell<u64>,
    pub cancelled: Cell<u64>,
    /// Number of questions about it.
    pub questions: Cell<u64>,
    /// True if residency may be queried (own file), false if not (foreign file).
    pub honest: bool,
    /// The account leaves reads out, as on FUSE.
    pub silent: bool,
    /// The file lies on no disk, as on tmpfs.
    pub memory: bool,
    /// The file is read past the cache (`O_DIRECT`).
    pub direct: bool,
    /// Calls of the program that had to wait for the disk.
    pub missed: Cell<u64>,
    /// Moments and bytes of disk reads.
    pub log: RefCell<Vec<(u64, u64)>>,
    /// Ranges for which write-back was started.
    pub started: RefCell<Vec<(u64, u64)>>,
    /// Moments and bytes of that.
    pub flushed: RefCell<Vec<(u64, u64)>>,
    /// Calls are seen before they are made only, as from outside.
    pub outside: bool,
    pub longest_sleep: Cell<u64>,
    /// What others have read from the file's disk by a moment, in bytes.
    pub others: Cell<Others>,
    /// Traffic of another disk by a moment.
    pub elsewhere: Cell<Others>,
    /// How long the file's disk was busy by a moment, in nanoseconds.
    pub busy: Cell<Others>,
    /// How long the disk takes for one piece besides what the simulated kernel takes, in nanoseconds.
    pub piece: Cell<u64>,
    /// The kernel reads ahead by windows of so many bytes, each with a mark at its beginning: a
    /// read of the mark triggers the next window, whatever advice was given since.
    pub window: Cell<Option<u64>>,
    marked: Cell<u64>,
    /// What the clock shows is not so many nanoseconds after the start: a clock that was set.
    pub clock: Cell<i64>,
    /// During the first sleep behind that moment the clock is set so.
    pub set_back_at: Cell<Option<(u64, i64)>>,
    /// Another thread jumps about by this descriptor during each sleep.
    pub shared: Cell<Option<&'static File>>,
    /// Another process of the class, which goes on during each sleep.
    pub rival: Cell<Option<Rival>>,
    /// The program is killed at this moment.
    pub killed_at: Cell<Option<u64>>,
    /// What the account says instead of the truth: of reads, and of writes.
    pub told: Cell<fn(u64) -> u64>,
    /// What the counters of the file's disk say instead of theirs; `None`: it is not listed.
    pub counted: Cell<Counted>,
}

/// Bytes by nanoseconds since the start.
pub type Others = fn(u64) -> u64;

/// What a counter says for the truth, if it is there.
pub type Counted = fn(u64) -> Option<u64>;

const fn no_traffic(_: u64) -> u64 {
    0
}

impl Machine {
    /// Creates a machine with a file of `size` bytes; `honest` as the field.
    pub fn new(size: u64, honest: bool) -> Self {
        Self {
            now: Cell::default(),
            size,
            probes: Cell::default(),
            hole: Cell::default(),
            position: Cell::default(),
            advice: Cell::default(),
            cached: RefCell::default(),
            dirty: RefCell::default(),
            read: Cell::default(),
            written: Cell::default(),
            cancelled: Cell::default(),
            questions: Cell::default(),
            honest,
            silent: false,
            memory: false,
            direct: false,
            missed: Cell::default(),
            log: RefCell::default(),
            started: RefCell::default(),
            flushed: RefCell::default(),
            outside: false,
            longest_sleep: Cell::default(),
            others: Cell::new(no_traffic),
            elsewhere: Cell::new(no_traffic),
            busy: Cell::new(no_traffic),
            piece: Cell::default(),
            window: Cell::default(),
            marked: Cell::new(u64::MAX),
            clock: Cell::default(),
            set_back_at: Cell::default(),
            shared: Cell::default(),
            rival: Cell::default(),
            killed_at: Cell::default(),
            told: Cell::new(|truth| truth),
            counted: Cell::new(Some),
        }
    }

    fn load(&self, from: u64, to: u64) -> u64 {
        let mut cached = self.cached.borrow_mut();
        let last = to.min(self.size.next_multiple_of(PAGE));
        let new = (from / PAGE..last.div_ceil(PAGE)).filter(|page| cached.insert(*page));
        let bytes = new.filter(|page| page * PAGE >= self.hole.get()).count();
        let bytes = bytes as u64 * PAGE;
        if bytes > 0 {
            self.read.set(self.read.get() + bytes);
            self.log.borrow_mut().push((self.now.get(), bytes));
        }
        bytes
    }

    /// The kernel's side of read(2).
    pub fn read(&self, count: u64) -> isize {
        let from = self.position.get();
        let end = (from + count).min(self.size);
        if self.direct {
            return self.read_past_cache(from, end);
        }
        let missed = (from / PAGE..end.div_ceil(PAGE)).any(|p| !self.cached.borrow().contains(&p));
        self.missed.set(self.missed.get() + u64::from(missed));
        let ahead = self.advice.get() != Some(Advice::Random);
        let window = self.window.get().unwrap_or(KERNEL_READ_AHEAD);
        let mut bytes = self.load(from, if missed && ahead { end + window } else { end });
        if missed && ahead && self.window.get().is_some() {
            self.marked.set(end);
        } else if (from..end).contains(&self.marked.get()) {
            let next = self.marked.get() + window;
            bytes += self.load(next, next + window);
            self.marked.set(next);
        }
        // A nanosecond a byte from the disk, a tenth of that from memory.
        self.now.set(self.now.get() + bytes + (end - from) / 10 + 300);
        self.position.set(end);
        (end - from) as isize
    }

    fn read_past_cache(&self, from: u64, end: u64) -> isize {
        let bytes = end - from;
        self.read.set(self.read.get() + bytes);
        self.log.borrow_mut().push((self.now.get(), bytes));
        self.now.set(self.now.get() + bytes + 300);
        self.position.set(end);
        bytes as isize
    }

    /// The kernel's side of write(2).
    pub fn write(&self, count: u64) -> isize {
        let from = self.position.get();
        let mut dirty = self.dirty.borrow_mut();
        let pages = from / PAGE..(from + count).div_ceil(PAGE);
        let new = pages.filter(|page| dirty.insert(*page)).count() as u64 * PAGE;
        self.written.set(self.written.get() + new);
        self.now.set(self.now.get() + count / 10 + 500);
        self.position.set(from + count);
        count as isize
    }

    /// The kernel writes everything that is dirty, as for a sync(2) of another program.
    pub fn flush(&self) {
        self.dirty.borrow_mut().clear();
    }

    pub fn seek(&self, to: u64) {
        self.position.set(to);
    }

    pub fn cache_all(&self) {
        self.cached.borrow_mut().extend(0..self.size.div_ceil(PAGE));
    }

    /// Nanoseconds that have really passed.
    pub fn passed(&self) -> u64 {
        self.now.get()
    }

    pub fn disk_reads(&self) -> u64 {
        self.read.get()
    }
}
