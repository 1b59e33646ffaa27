//! Predictions, and whether they or the account are charged.

use discnice_estimator::blocks::{PAGE, Pages, read_before_write};
use discnice_estimator::cache::{Detector, Subject};
use discnice_estimator::file_systems::OTHERS;
use discnice_estimator::fuse_reads::{Behind, Served};
use discnice_estimator::regions::FileKey;
use discnice_estimator::{Access, Estimator, FileSystem, Kind, Modules, Verdict};
use discnice_ledger::member::Charged;

use crate::host::{FileStatus, Host, WriteMode};
use crate::{File, Forecast, Regulator, Thread, Ticket};

/// Share of files, one in so many, that are predicted for comparison on a file system that keeps an
/// account.
const SAMPLE: u64 = 16;

/// One call moves at most so many bytes, whatever a program asks for (`MAX_RW_COUNT` in the kernel's
/// include/linux/fs.h).
const MOVED_MAX: u64 = 0x7fff_f000;

/// Trees of names, inodes and extents are read in blocks of 4 to 64 KiB, a few at a time. What is more was
/// mispredicted.
const NAMES_MOST: u64 = 128 << 10;

/// A file that the program has mapped.
#[derive(Debug, Clone, Copy)]
pub struct Mapped {
    /// The slot of its file system.
    pub slot: usize,
    /// True if mincore(2) is reliable for the file.
    pub told: bool,
    /// Its size in pages.
    pub pages: u64,
    /// Device number of its file system, as stat(2) encodes it.
    pub device: u64,
    /// Pages that a page fault reads around itself, where the class was told and `device` does not tell.
    pub window: Option<u64>,
    /// `FileKey::get` of the file where a daemon serves it, else zero.
    pub served: u64,
}

impl<H: Host> Regulator<'_, H> {
    pub(crate) fn modules(&self) -> Modules {
        self.class.estimation().modules()
    }

    pub(crate) fn file_system(&self, slot: usize) -> Option<&FileSystem> {
        self.class.estimation().file_system(slot)
    }

    /// Notes which file it is, whether its calls are predicted, and whether it was made just now.
    pub(crate) fn identify(&self, fd: i32, file: &File, status: FileStatus) {
        if !status.regular {
            return;
        }
        let slot = self.class.estimation().file_systems().slot(status.device);
        let memory = |fs: &FileSystem| fs.is_in_memory(|| self.host.is_in_memory(fd));
        if self.file_system(slot).is_some_and(memory) {
            return;
        }
        if self.class.estimation().estimator() != Estimator::Account {
            let key = FileKey::new(status.device, status.inode);
            file.set_identity(slot, key);
            file.set_predicted(self.predicts(slot, key));
            self.opened_behind(slot, key, status);
        }
        if status.size == 0
            && let Some(fs) = self.file_system(slot)
            && self.host.can_write(fd)
        {
            // New, or emptied, which the file system notes as well.
            let charged = fs.created();
            if fs.minds_tiny() {
                file.set_made();
            }
            if charged > 0 && self.trusts_prediction(slot) {
                fs.note(Kind::Write, charged, 0);
                self.settle_as(Ticket::FREE, 0, charged);
            }
        }
    }

    fn predicts(&self, slot: usize, key: FileKey) -> bool {
        match self.class.estimation().estimator() {
            Estimator::Predict => true,
            Estimator::Account => false,
            Estimator::Auto => {
                let verdict =
                    self.file_system(slot).map_or(Verdict::Undecided, FileSystem::verdict);
                verdict != Verdict::Accounted || key.get().is_multiple_of(SAMPLE)
            }
        }
    }

    /// Returns true if the prediction is charged on this file's file system, regardless of the
    /// account.
    pub(crate) fn trusts_prediction(&self, slot: usize) -> bool {
        match self.class.estimation().estimator() {
            Estimator::Predict => true,
            Estimator::Account => false,
            Estimator::Auto => {
                self.file_system(slot).is_some_and(|fs| fs.verdict() == Verdict::Silent)
            }
        }
    }

    /// The account that a call left since the last look, corrected by what was predicted: what is
    /// charged. Both are compared.
    pub(crate) fn judge(&self, forecast: Option<Forecast>, account: Charged) -> Charged {
        let estimator = self.class.estimation().estimator();
        if estimator == Estimator::Account {
            return account;
        }
        let made = forecast.unwrap_or(Forecast::NONE);
        let Some(fs) = self.file_system(made.slot) else { return account };
        let predicted = Charged { read: made.read, written: made.write };
        if estimator == Estimator::Predict {
            let by_faults = self.read_by_faults(made, account);
            let by_names = self.read_for_names(made, account.read.saturating_sub(by_faults));
            let read = account.read.saturating_sub(by_faults).saturating_sub(by_names);
            fs.note(made.kind, made.sum(), read.saturating_add(account.written));
            return predicted;
        }
        fs.note(made.kind, made.sum(), account.read.saturating_add(account.written));
        match (forecast.is_some(), fs.verdict()) {
            (false, _) | (_, Verdict::Accounted) => account,
            // What else was charged since the last look belongs to another file system.
            (_, Verdict::Silent) if made.write > 0 || made.kind == Kind::Write => predicted,
            (_, Verdict::Silent) => Charged {
                read: predicted.read.saturating_add(account.read),
                written: predicted.written,
            },
            (_, Verdict::Undecided) => Charged {
                read: predicted.read.max(account.read),
                written: predicted.written.max(account.written),
            },
        }
    }

    /// Returns the bytes read by page faults since the last look, which are never predicted:
    /// everything in the account beyond the prediction for the call that led to this look. It thus
    /// does not count as an error of that prediction.
    fn read_by_faults(&self, made: Forecast, account: Charged) -> u64 {
        let faults = self.books.enter_faults(self.host.major_faults());
        let read = if faults > 0 { account.read.saturating_sub(made.read) } else { 0 };
        if let Some(fs) = self.file_system(OTHERS) {
            fs.note(Kind::Other, 0, read);
        }
        read
    }

    /// What a look at a read found beyond its pages, which are known: calls on names before it have submitted it
    /// without waiting for it (btrfs reads leaves of its trees ahead), or the file system had to read where the
    /// pages are. It is what such calls are learnt from.
    fn read_for_names(&self, made: Forecast, read: u64) -> u64 {
        let beyond = read.saturating_sub(made.read);
        if made.kind != Kind::Read || beyond == 0 || beyond > NAMES_MOST {
            return 0;
        }
        if let Some(fs) = self.file_system(OTHERS) {
            fs.note(Kind::Metadata, 0, beyond);
        }
        beyond
    }

    //= discnice/4.3-cached-is-free
    /// What reading these bytes will cost.
    pub(crate) fn forecast_read(&self, fd: i32, file: &File, at: u64, count: u64) -> Forecast {
        let modules = self.modules();
        let mut forecast = Forecast::nothing(file, Kind::Read);
        let Some(status) = self.host.status(fd) else { return forecast };
        let asked = Pages::read(at, count, status.size);
        let subject = Subject { fd, size: status.size };
        let cached = modules.cache_detector && !file.write_mode().is_some_and(|mode| mode.direct);
        let detected = cached && !self.is_told_soon(fd, file, asked);
        let missing =
            if detected { file.detector.missing(self.host, subject, asked) } else { asked.count() };
        let missing =
            if detected { self.without_holes(fd, status, asked, missing) } else { missing };
        let missing = self.read_behind(file, status.size, asked, missing);
        forecast.read = if modules.read_size {
            missing.saturating_mul(PAGE)
        } else {
            missing.saturating_mul(PAGE).min(count)
        };
        forecast
    }

    /// Returns true if the account will soon tell what asking now would cost I/O to find out: a
    /// probe reads page after page what the call reads at once.
    fn is_told_soon(&self, fd: i32, file: &File, asked: Pages) -> bool {
        !file.is_predicted() && file.detector.must_probe(self.host, fd, asked)
    }

    /// Returns how many of the `missing` pages are on the disk: a file with fewer bytes than its
    /// size has holes, and one below a page may lie among the file system's own data.
    fn without_holes(&self, fd: i32, status: FileStatus, pages: Pages, missing: u64) -> u64 {
        let is_plain = status.allocated >= status.size && status.size >= PAGE;
        if missing == 0 || is_plain {
            return missing;
        }
        let data = self.host.data(fd, pages.offset(), pages.bytes());
        data.map_or(missing, |data| missing.min(data.div_ceil(PAGE)))
    }

    /// What reading a slice ahead will cost.
    pub(crate) fn forecast_slice(&self, fd: i32, file: &File, from: u64, length: u64) -> Forecast {
        let mut forecast = Forecast::nothing(file, Kind::Read);
        let pages = Pages::touched(from, length);
        let mut missing = pages.count();
        if self.modules().cache_detector {
            missing = file.detector.count_missing(self.host, fd, pages);
            if missing > 0
                && let Some(status) = self.host.status(fd)
            {
                missing = self.without_holes(fd, status, pages, missing);
                missing = self.read_behind(file, status.size, pages, missing);
            }
        }
        forecast.read = missing.saturating_mul(PAGE);
        forecast
    }

    /// Returns how many of the `missing` pages the disk reads, where a daemon reads them for us,
    /// including what is read ahead for it.
    fn read_behind(&self, file: &File, size: u64, pages: Pages, missing: u64) -> u64 {
        let Some((slot, key)) = file.identity().filter(|_| missing > 0) else { return missing };
        let window = self.file_system(slot).and_then(FileSystem::served);
        window.map_or(missing, |window| {
            self.class.estimation().behind().read(Served { key, size, window }, pages)
        })
    }

    /// The behind of a file's file system, where a daemon serves it.
    pub(crate) fn behind(&self, slot: usize) -> Option<&Behind> {
        let served = self.file_system(slot).is_some_and(|fs| fs.served().is_some());
        served.then(|| self.class.estimation().behind())
    }

    /// What a read that is already done cost, of which nothing was known before and which took as
    /// long as if it had missed.
    pub(crate) fn forecast_late(&self, file: &File, end: u64, moved: u64) -> Forecast {
        let pages = Pages::touched(end.saturating_sub(moved), moved);
        Forecast { read: pages.bytes(), ..Forecast::nothing(file, Kind::Read) }
    }

    /// What writing these bytes will cost; from here on they count as written.
    pub(crate) fn forecast_write(
        &self,
        fd: i32,
        file: &File,
        at: Option<u64>,
        count: u64,
    ) -> Forecast {
        let count = count.min(MOVED_MAX);
        let mut forecast = Forecast::nothing(file, Kind::Write);
        let (Some((slot, key)), Some(status)) = (file.identity(), self.host.status(fd)) else {
            return forecast;
        };
        let mode = self.write_mode(fd, file);
        let place =
            if mode.append { Some(status.size) } else { at.or_else(|| self.host.position(fd)) };
        let Some(place) = place else { return forecast };
        if at.is_none() {
            file.set_position(Some(place));
        }
        if !self.modules().write_size || mode.direct {
            forecast.write = count;
            return forecast;
        }
        let pages = Pages::touched(place, count);
        if mode.synchronous {
            forecast.write = pages.bytes();
            return forecast;
        }
        let (regions, now) = (self.class.estimation().regions(), self.host.now());
        // What is dirty is there, whatever a stacked file system says.
        let partial = read_before_write(place, count, status.size)
            .map(|page| if regions.clean(key, page, now) > 0 { page } else { Pages::NONE });
        let kept = self.still_dirty(fd, file, (slot, key), pages);
        let new = regions.register(key, pages, now).min(pages.count() - kept);
        forecast.write = new.saturating_mul(PAGE);
        file.set_dirty(pages.offset(), pages.end.saturating_mul(PAGE));
        if new > 0 {
            let missing =
                partial.iter().map(|page| self.missing_before_write(fd, file, status, *page));
            forecast.read = missing.sum::<u64>().saturating_mul(PAGE);
        }
        if let Some(behind) = self.behind(slot) {
            behind.written(key, pages, status.size);
        }
        forecast
    }

    //= discnice/5.2-flush-detection
    /// Returns how many of these pages are dirty, as far as the table knows. The kernel may have written some since they
    /// were registered, for a sync or because it wants to: it is asked, and what it has written is taken out.
    fn still_dirty(
        &self,
        fd: i32,
        file: &File,
        (slot, key): (usize, FileKey),
        pages: Pages,
    ) -> u64 {
        let regions = self.class.estimation().regions();
        let believed = pages.count() - regions.clean(key, pages, self.host.now());
        if believed == 0 {
            return 0;
        }
        file.note_asked();
        let told = self.host.count(fd, pages.offset(), pages.bytes()).ok();
        let dirty = self
            .file_system(slot)
            .map_or(believed, |fs| fs.still_dirty(believed, told.map(|counts| counts.dirty)));
        if dirty < believed {
            regions.written_back(key, pages);
            file.forget_dirty();
        }
        dirty
    }

    /// What a predicted write cost that moved `result` bytes from `at` or what was the offset before: one that
    /// failed or ended early makes dirty only what it moved.
    pub(crate) fn correct_write(
        &self,
        file: &File,
        made: Forecast,
        at: Option<u64>,
        result: isize,
    ) -> Forecast {
        let moved = result.max(0) as u64;
        let most = if moved == 0 {
            0
        } else {
            moved.div_ceil(PAGE).saturating_add(1).saturating_mul(PAGE)
        };
        let beyond = made.write.saturating_sub(most);
        if beyond == 0 {
            return made;
        }
        if let (Some((_, key)), Some(begin)) = (file.identity(), file.place(at)) {
            // Without `at` the offset has moved on.
            let end = if at.is_some() { begin.saturating_add(moved) } else { begin };
            let left = Pages::touched(end.next_multiple_of(PAGE), beyond);
            self.class.estimation().regions().written_back(key, left);
        }
        Forecast { write: most, ..made }
    }

    fn missing_before_write(&self, fd: i32, file: &File, status: FileStatus, page: Pages) -> u64 {
        if page.count() == 0 {
            return 0;
        }
        if let Some((slot, key)) = file.identity()
            && let Some(behind) = self.behind(slot)
        {
            // The daemon writes part of a page, which is read for it first.
            return behind.missing(key, page);
        }
        let missing = file.detector.count_missing(self.host, fd, page);
        self.without_holes(fd, status, page, missing)
    }

    /// What a call on names or inodes cost that waited so often, as far as the prediction alone
    /// counts.
    pub(crate) fn forecast_metadata(&self, waited: u32, access: Access) -> Option<Forecast> {
        if !self.class.predicts() {
            return None;
        }
        let read = self.file_system(OTHERS).map_or(0, |fs| fs.waited(waited, access));
        Some(Forecast { read, kind: Kind::Metadata, ..Forecast::NONE })
    }

    /// What bringing a file into the cache will cost, as far as the prediction alone counts.
    pub(crate) fn forecast_bringing_in(&self, fd: i32, from: u64, length: u64) -> Option<Forecast> {
        if !self.class.predicts() {
            return None;
        }
        let missing = Detector::new().count_missing(self.host, fd, Pages::touched(from, length));
        Some(Forecast { read: missing.saturating_mul(PAGE), ..Forecast::NONE })
    }

    /// What is known of a file that the program has mapped, if what is read through the mapping must be
    /// predicted.
    #[must_use]
    pub fn watches_mapping(&self, fd: i32) -> Option<Mapped> {
        if !self.class.is_limited() || self.class.estimation().estimator() == Estimator::Account {
            return None;
        }
        let status = self.host.status(fd).filter(|status| status.regular)?;
        let slot = self.class.estimation().file_systems().slot(status.device);
        let all = Pages::touched(0, status.size);
        if status.size < PAGE && self.without_holes(fd, status, all, all.count()) == 0 {
            // It lies among the file system's own data, or is a hole.
            return None;
        }
        let told = || self.host.resident(fd, 0, PAGE).is_some();
        self.trusts_prediction(slot).then(|| Mapped {
            slot,
            told: told(),
            pages: status.size.div_ceil(PAGE),
            device: status.device,
            window: self.file_system(slot).and_then(FileSystem::read_around),
            served: self
                .behind(slot)
                .map_or(0, |_| FileKey::new(status.device, status.inode).get()),
        })
    }

    /// Returns how many of the `read` pages, which page faults have read of a file that a daemon
    /// serves, the disk has read. Which pages they were is not known: if most of the mapping was,
    /// all of it is taken to be cached now.
    #[must_use]
    pub fn read_behind_mapping(&self, served: u64, pages: Pages, read: u64) -> u64 {
        let Some(key) = FileKey::from_number(served) else { return read };
        let behind = self.class.estimation().behind();
        let missing = behind.missing(key, pages);
        if read >= pages.count() / 2 {
            behind.brought_in(key, pages);
        }
        missing.saturating_mul(read).checked_div(pages.count()).unwrap_or(read).min(read)
    }

    /// Settles pages that page faults on a mapping have read.
    pub fn mapping_read(&self, thread: &Thread, slot: usize, pages: u64) {
        let read = pages.saturating_mul(PAGE);
        let forecast = Forecast { read, write: 0, slot, kind: Kind::Other };
        let _ = self.settle(thread, Ticket { forecast: Some(forecast), ..Ticket::FREE });
    }

    pub(crate) fn write_mode(&self, fd: i32, file: &File) -> WriteMode {
        file.write_mode().unwrap_or_else(|| {
            let mode = self.host.write_mode(fd).unwrap_or_default();
            file.set_write_mode(mode);
            mode
        })
    }
}
