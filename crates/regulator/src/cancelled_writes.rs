//! What was written and need not be: deleting, cutting off, and its opposite, making it last.

use discnice_estimator::CallKind;
use discnice_estimator::blocks::PAGE;
use discnice_estimator::regions::FileKey;
use discnice_units::Bytes;

use crate::host::{FileStatus, Host};
use crate::{File, Regulator};

impl<H: Host> Regulator<'_, H> {
    /// A descriptor was opened on a file that thereby lost what it held; `status` is that before.
    pub fn emptied(&self, fd: i32, file: &File, status: FileStatus) {
        self.classify(fd, file);
        file.set_emptied();
        self.truncated(status, 0);
    }

    /// A file was cut to `size` bytes, or lost its last name, which leaves none; `status` is that before.
    pub fn truncated(&self, status: FileStatus, size: u64) {
        let estimation = self.class.estimation();
        if !status.regular {
            return;
        }
        let key = FileKey::new(status.device, status.inode);
        estimation.behind().cut(key, size, status.size);
        let pages = estimation.regions().truncated(key, size, status.size, self.host.now());
        if pages == 0 {
            return;
        }
        let slot = estimation.file_systems().slot(status.device);
        let bytes = pages.saturating_mul(PAGE);
        if self.class.predicts() {
            // Elsewhere the account tells what was cancelled.
            self.class.take_back_dirty(Bytes::new(bytes));
        }
        let trusted = self.trusts_prediction(slot);
        let mut all = bytes;
        if let Some(fs) = estimation.file_system(slot) {
            let made = if size == 0 { fs.uncreated() } else { 0 };
            all = bytes.saturating_add(if trusted { made } else { 0 });
            fs.credit(CallKind::Write, all);
        }
        if trusted {
            self.credit(all);
        }
    }

    /// A file was made to last (fsync): what was dirty is written and cannot be taken back.
    pub fn synced(&self, file: &File) {
        if let Some((_, key)) = file.identity() {
            self.class.estimation().regions().flushed(key);
            file.forget_dirty();
        }
    }
}
