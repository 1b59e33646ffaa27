//! A simulated system for tests: a clock, a page cache, a disk without limits, and an account.

use core::cell::{Cell, RefCell};
use std::alloc::{Layout, alloc_zeroed};
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::vec::Vec;

use discnice_estimator::{Counts, Probed, Refusal, System};
use discnice_ledger::board::{Moved, Work};
use discnice_ledger::member::{Books, Charged};
use discnice_ledger::policy::{Limits, Resource, When};
use discnice_ledger::primitive::AtomicU32;
use discnice_ledger::{Board, Class};
use discnice_units::{Nanos, Rate};

use crate::{Advice, DiskTraffic, File, FileStatus, Host, Regulator, Thread, Woken, WriteMode};

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

impl Host for Machine {
    fn now(&self) -> Nanos {
        Nanos((self.now.get() + 1_000_000_000_000).saturating_add_signed(self.clock.get()))
    }

    fn account(&self) -> Charged {
        let read = if self.silent { 0 } else { self.read.get() };
        let told = self.told.get();
        Charged { read: told(read), written: told(self.written.get()) }
    }

    fn read_by_thread(&self) -> u64 {
        self.read.get()
    }

    fn cancelled(&self) -> Option<u64> {
        self.questions.set(self.questions.get() + 1);
        Some(self.cancelled.get())
    }

    fn switches(&self) -> (u64, u64) {
        (self.missed.get(), 0)
    }

    fn wait(&self, _: &AtomicU32, _: u32, until: Nanos) -> Woken {
        let length = until.minus(self.now()).0;
        self.longest_sleep.set(self.longest_sleep.get().max(length));
        self.now.set(self.now.get() + length);
        if let Some((_, clock)) = self.set_back_at.get().filter(|(at, _)| *at < self.now.get()) {
            self.clock.set(clock);
            self.set_back_at.set(None);
        }
        Woken::Due
    }

    fn drop_cached(&self, _: i32, offset: u64, length: u64) {
        if (offset..offset + length).contains(&self.marked.get()) {
            self.marked.set(u64::MAX);
        }
        let pages = offset / PAGE..(offset + length).div_ceil(PAGE);
        self.cached.borrow_mut().retain(|page| !pages.contains(page));
    }

    fn wake_all(&self, _: &AtomicU32) {}

    fn disks(&self, mut each: impl FnMut(DiskTraffic)) -> bool {
        let others = (self.others.get())(self.now.get());
        let told = self.counted.get();
        if let Some(inward) = told(self.read.get() + others)
            && let Some(outward) = told(self.written.get())
            && let Some(busy) = told((self.busy.get())(self.now.get()))
        {
            let moved = Moved { inward, outward };
            each(DiskTraffic {
                id: DISK,
                physical: true,
                moved,
                work: Work { busy: Nanos(busy), ..Work::default() },
            });
        }
        // Another disk, on which the file is not.
        let moved = Moved { inward: (self.elsewhere.get())(self.now.get()), outward: 0 };
        each(DiskTraffic { id: DISK + 1, physical: true, moved, work: Work::default() });
        true
    }

    fn disk_of(&self, _: u64) -> Option<u64> {
        Some(DISK)
    }

    fn status(&self, fd: i32) -> Option<FileStatus> {
        let (device, inode) = (1, 2);
        if fd == PIPE {
            let (disk, regular, size, allocated) = (false, false, 0, 0);
            return Some(FileStatus {
                disk,
                regular,
                socket: false,
                size,
                device,
                inode,
                allocated,
            });
        }
        Some(FileStatus {
            disk: true,
            regular: true,
            socket: false,
            size: self.size,
            device,
            inode,
            allocated: self.size.next_multiple_of(PAGE) - self.hole.get(),
        })
    }

    fn is_in_memory(&self, _: i32) -> bool {
        self.memory
    }

    fn data(&self, _: i32, offset: u64, length: u64) -> Option<u64> {
        Some((offset + length).saturating_sub(offset.max(self.hole.get())))
    }

    fn position(&self, _: i32) -> Option<u64> {
        Some(self.position.get())
    }

    fn write_mode(&self, _: i32) -> Option<WriteMode> {
        Some(WriteMode { direct: self.direct, ..WriteMode::default() })
    }

    fn read_ahead(&self, _: i32, offset: u64, length: u64) {
        self.load(offset, offset + length);
    }

    fn is_between_calls(&self) -> bool {
        self.outside
    }

    fn await_read(&self, _: i32, _: u64) {
        self.now.set(self.now.get() + self.piece.get());
    }

    fn await_written(&self, _: i32, _: (u64, u64), _: u64) {
        self.now.set(self.now.get() + self.piece.get());
    }

    fn advise(&self, _: i32, advice: Advice) {
        self.advice.set(Some(advice));
    }

    fn write_back(&self, _: i32, offset: u64, length: u64) {
        let end = if length == 0 { u64::MAX } else { offset + length };
        let mut dirty = self.dirty.borrow_mut();
        let before = dirty.len();
        dirty.retain(|page| !(offset / PAGE..end.div_ceil(PAGE)).contains(page));
        let cleaned = (before - dirty.len()) as u64 * PAGE;
        self.flushed.borrow_mut().push((self.now.get(), cleaned));
        self.started.borrow_mut().push((offset, if length == 0 { cleaned } else { length }));
    }
}

impl System for Machine {
    fn count(&self, _: i32, offset: u64, length: u64) -> Result<Counts, Refusal> {
        if !self.honest {
            return Err(Refusal::Foreign);
        }
        let pages = offset / PAGE..(offset + length).div_ceil(PAGE);
        let dirty = self.dirty.borrow().range(pages.clone()).count() as u64;
        Ok(Counts { cached: self.cached.borrow().range(pages).count() as u64, dirty })
    }

    fn resident(&self, _: i32, _: u64, _: u64) -> Option<u64> {
        None
    }

    fn probe(&self, _: i32, offset: u64, length: u64) -> Option<Probed> {
        self.probes.set(self.probes.get() + 1);
        let mut seen = Probed::default();
        for page in offset / PAGE..(offset + length).div_ceil(PAGE) {
            if !self.cached.borrow().contains(&page) {
                seen.read = self.load(page * PAGE, (page + 1) * PAGE) / PAGE;
                break;
            }
            seen.cached += 1;
        }
        Some(seen)
    }
}

/// A class of its own with a limit on the whole.
pub fn class(rate: u64) -> &'static Class {
    let layout = Layout::from_size_align(Class::SIZE, 4096).expect("a page-aligned layout");
    let class = leaked(layout);
    let limits = Limits::UNLIMITED.with(Resource::Total, Rate::per_second(rate));
    class.set_limits(Nanos(0), &limits);
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
    class.set_limits(Nanos(0), &limits);
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
