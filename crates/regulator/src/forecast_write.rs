//! Predictions of what writes cost.

use discnice_estimator::CallKind;
use discnice_estimator::blocks::{PAGE, Pages, read_before_write};
use discnice_estimator::regions::FileKey;

use crate::host::{FileStatus, Host, WriteMode};
use crate::{File, Forecast, Regulator};

/// One call moves at most so many bytes, whatever a program asks for (`MAX_RW_COUNT` in the kernel's
/// include/linux/fs.h).
const MOVED_MAX: u64 = 0x7fff_f000;

impl<H: Host> Regulator<'_, H> {
    /// What writing these bytes will cost; from here on they count as written.
    pub(crate) fn forecast_write(
        &self,
        fd: i32,
        file: &File,
        at: Option<u64>,
        count: u64,
    ) -> Forecast {
        let count = count.min(MOVED_MAX);
        let mut forecast = Forecast::nothing(file, CallKind::Write);
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

    pub(crate) fn write_mode(&self, fd: i32, file: &File) -> WriteMode {
        file.write_mode().unwrap_or_else(|| {
            let mode = self.host.write_mode(fd).unwrap_or_default();
            file.set_write_mode(mode);
            mode
        })
    }
}
