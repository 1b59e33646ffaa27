//! Charges what a daemon reads of names for processes that look up files it serves (FUSE), which is
//! in no account.

use discnice_estimator::CallKind;
use discnice_estimator::blocks::PAGE;
use discnice_estimator::fuse_reads::InodeTable;
use discnice_estimator::regions::FileKey;

use crate::host::{FileStatus, Host};
use crate::{Regulator, Ticket};

impl<H: Host> Regulator<'_, H> {
    /// Notes a file opened on a file system that a daemon serves: the daemon opens it too, which
    /// reads its inode.
    pub(crate) fn opened_behind(&self, slot: usize, key: FileKey, status: FileStatus) {
        if let Some(behind) = self.behind(slot) {
            behind.opened(key);
            if status.size > 0 {
                self.looks_at(slot, status.device, status.inode);
            }
        }
    }

    /// A call looked at this file. Returns whether a daemon did so for it: then all is counted.
    pub fn looked_at(&self, status: FileStatus) -> bool {
        let slot = self.class.estimation().file_systems().slot(status.device);
        self.looks_at(slot, status.device, status.inode)
    }

    /// A call listed this directory and found a file of that number: the kernel asks for the inodes of what is listed
    /// as well (`FUSE_READDIRPLUS`).
    pub fn listed(&self, directory: FileStatus, inode: u64) {
        let (device, slot) =
            (directory.device, self.class.estimation().file_systems().slot(directory.device));
        if !self.looks_at(slot, device, directory.inode) {
            return;
        }
        let _ = self.looks_at(slot, device, inode);
        if let Some(behind) = self.behind(slot) {
            let key = FileKey::new(device, directory.inode);
            self.read_for_daemon(slot, behind.listed(key, directory.size));
        }
    }

    fn looks_at(&self, slot: usize, device: u64, inode: u64) -> bool {
        let (Some(behind), Some(fs)) = (self.behind(slot), self.file_system(slot)) else {
            return false;
        };
        let table = fs.inode_table();
        self.read_for_daemon(slot, behind.looked_at(device, inode, table));
        table != InodeTable::default()
    }

    fn read_for_daemon(&self, slot: usize, pages: u64) {
        let Some(fs) = self.file_system(slot).filter(|_| pages > 0) else { return };
        let read = pages.saturating_mul(PAGE);
        fs.note(CallKind::Metadata, read, 0);
        if self.trusts_prediction(slot) {
            self.settle_as(Ticket::FREE, read, 0);
        }
    }
}
