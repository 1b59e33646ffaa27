//! What page faults read of mapped files, where that is predicted.

use discnice_estimator::blocks::{PAGE, Pages};
use discnice_estimator::regions::FileKey;
use discnice_estimator::{CallKind, Estimator, FileSystem};

use crate::host::Host;
use crate::{Forecast, Regulator, Thread, Ticket};

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
        let forecast = Forecast { read, write: 0, slot, kind: CallKind::Other };
        let _ = self.settle(thread, Ticket { forecast: Some(forecast), ..Ticket::FREE });
    }
}
