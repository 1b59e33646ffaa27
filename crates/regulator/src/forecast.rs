//! Predictions of what calls cost, and which files' calls are predicted.

use discnice_estimator::blocks::{PAGE, Pages};
use discnice_estimator::cache::{Detector, Subject};
use discnice_estimator::file_systems::OTHERS;
use discnice_estimator::fuse_reads::{Behind, Served};
use discnice_estimator::regions::FileKey;
use discnice_estimator::{Access, CallKind, Estimator, FileSystem, Modules, Verdict};

use crate::host::{FileStatus, Host};
use crate::{File, Forecast, Regulator, Ticket};

/// Share of files, one in so many, that are predicted for comparison on a file system that keeps an
/// account.
const SAMPLE: u64 = 16;

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
                fs.note(CallKind::Write, charged, 0);
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

    //= discnice/4.3-cached-is-free
    /// What reading these bytes will cost.
    pub(crate) fn forecast_read(&self, fd: i32, file: &File, at: u64, count: u64) -> Forecast {
        let modules = self.modules();
        let mut forecast = Forecast::nothing(file, CallKind::Read);
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
    pub(crate) fn without_holes(
        &self,
        fd: i32,
        status: FileStatus,
        pages: Pages,
        missing: u64,
    ) -> u64 {
        let is_plain = status.allocated >= status.size && status.size >= PAGE;
        if missing == 0 || is_plain {
            return missing;
        }
        let data = self.host.data(fd, pages.offset(), pages.bytes());
        data.map_or(missing, |data| missing.min(data.div_ceil(PAGE)))
    }

    /// What reading a slice ahead will cost.
    pub(crate) fn forecast_slice(&self, fd: i32, file: &File, from: u64, length: u64) -> Forecast {
        let mut forecast = Forecast::nothing(file, CallKind::Read);
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
        Forecast { read: pages.bytes(), ..Forecast::nothing(file, CallKind::Read) }
    }

    /// What a call on names or inodes cost that waited so often, as far as the prediction alone
    /// counts.
    pub(crate) fn forecast_metadata(&self, waited: u32, access: Access) -> Option<Forecast> {
        if !self.class.predicts() {
            return None;
        }
        let read = self.file_system(OTHERS).map_or(0, |fs| fs.waited(waited, access));
        Some(Forecast { read, kind: CallKind::Metadata, ..Forecast::NONE })
    }

    /// What bringing a file into the cache will cost, as far as the prediction alone counts.
    pub(crate) fn forecast_bringing_in(&self, fd: i32, from: u64, length: u64) -> Option<Forecast> {
        if !self.class.predicts() {
            return None;
        }
        let missing = Detector::new().count_missing(self.host, fd, Pages::touched(from, length));
        Some(Forecast { read: missing.saturating_mul(PAGE), ..Forecast::NONE })
    }
}
