//! What the kernel of the simulated machine answers the regulator and the estimator.

use discnice_estimator::{Counts, Probed, Refusal, System};
use discnice_ledger::board::{Moved, Work};
use discnice_ledger::member::Charged;
use discnice_ledger::primitive::AtomicU32;
use discnice_units::{Moment, Nanos};

use super::{DISK, Machine, PAGE, PIPE};
use crate::{Advice, DiskTraffic, FileStatus, Host, Woken, WriteMode};

impl Host for Machine {
    fn now(&self) -> Moment {
        Moment((self.now.get() + 1_000_000_000_000).saturating_add_signed(self.clock.get()))
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

    fn wait(&self, _: &AtomicU32, _: u32, until: Moment) -> Woken {
        let length = until.since(self.now()).0;
        self.longest_sleep.set(self.longest_sleep.get().max(length));
        self.now.set(self.now.get() + length);
        if let Some((_, clock)) = self.set_back_at.get().filter(|(at, _)| *at < self.now.get()) {
            self.clock.set(clock);
            self.set_back_at.set(None);
        }
        self.rival.set(self.rival.get().map(|rival| rival.after(until)));
        if let Some(file) = self.shared.get() {
            file.end_stream();
            for step in 1..=2 {
                let _ = file.repeats_step(step);
            }
        }
        if self.is_abandoned() { Woken::Abandoned } else { Woken::Due }
    }

    fn is_abandoned(&self) -> bool {
        self.killed_at.get().is_some_and(|at| at < self.now.get())
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
