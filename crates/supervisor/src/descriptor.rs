//! What is known of a descriptor of a supervised process, as long as it means one file.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use discnice_regulator::File;
use discnice_sys::file::{self, Status};
use rustix::fs::{CWD, Mode, OFlags, SeekFrom, openat, seek};

use crate::lead::may_take_long;

/// What is known of one descriptor.
#[derive(Debug, Default)]
pub struct Descriptor {
    /// The regulator's hints.
    pub file: File,
    /// The file that they are about.
    device: u64,
    inode: u64,
    /// Set if a daemon or server other than the kernel serves it.
    is_served: AtomicBool,
    /// Where the file was when it was written to first, or read in a class that protects the page cache.
    path: OnceLock<Option<PathBuf>>,
}

impl Descriptor {
    /// Nothing is known but which file it means.
    pub fn of(status: &Status) -> Self {
        Self { device: status.device, inode: status.inode, ..Self::default() }
    }

    /// Returns true if it means this file.
    pub fn is(&self, status: &Status) -> bool {
        (self.device, self.inode) == (status.device, status.inode)
    }

    /// Returns true if a descriptor of ours means this file.
    pub fn is_behind(&self, open: &OwnedFd) -> bool {
        file::status_as_known(open.as_raw_fd()).is_ok_and(|status| self.is(&status))
    }

    /// Notes whether the kernel alone serves the file.
    pub fn set_local(&self, is_local: bool) {
        self.is_served.store(!is_local, Ordering::Relaxed);
    }

    /// Passes the lead on if examining the file may ask its daemon or server.
    pub fn may_ask(&self) {
        if self.is_served.load(Ordering::Relaxed) {
            may_take_long();
        }
    }

    /// Remembers where the file is.
    pub fn note_path(&self, path: impl FnOnce() -> Option<PathBuf>) {
        self.path.get_or_init(path);
    }

    /// Where the file was, if that is known.
    pub fn path(&self) -> Option<&PathBuf> {
        self.path.get()?.as_ref()
    }

    /// Returns true if it was noted where the file is, or that nothing tells.
    pub fn is_placed(&self) -> bool {
        self.path.get().is_some()
    }

    /// Opens the file by its path, for a moment and for reading, if it is there still. The offset is at its end, where that of a
    /// program is that has written in order.
    pub fn reopen(&self, process: u32) -> Option<OwnedFd> {
        let path = self.path()?;
        let inside = Path::new("/proc").join(process.to_string()).join("root");
        self.reopen_at(path)
            // The process may see other file systems there.
            .or_else(|| self.reopen_at(&inside.join(path.strip_prefix("/").ok()?)))
    }

    fn reopen_at(&self, path: &Path) -> Option<OwnedFd> {
        // Which neither waits for another end nor tells a driver.
        let found =
            openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        let found = found.ok()?;
        let status = file::status_as_known(found.as_raw_fd()).ok()?;
        if !status.regular || !self.is(&status) {
            return None;
        }
        let own = format!("/proc/self/fd/{}", found.as_raw_fd());
        let opened = openat(CWD, own, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        seek(&opened, SeekFrom::End(0)).ok()?;
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_opened_again_if_it_is_there_still() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        let mut written = File::create(at("file")).unwrap();
        written.write_all(b"text").unwrap();
        let status = file::status(written.as_raw_fd()).unwrap();
        let descriptor = Descriptor::of(&status);
        let reopened = |descriptor: &Descriptor| descriptor.reopen(std::process::id());
        assert!(reopened(&descriptor).is_none(), "nothing tells where it is");
        descriptor.note_path(|| Some(at("file")));
        let again = reopened(&descriptor).expect("the file");
        assert!(descriptor.is_behind(&again));
        assert_eq!(file::position(again.as_raw_fd()).unwrap(), 4, "where writes have ended");
        fs::rename(at("file"), at("renamed")).unwrap();
        assert!(reopened(&descriptor).is_none(), "renamed");
        std::os::unix::fs::symlink(at("renamed"), at("file")).unwrap();
        assert!(reopened(&descriptor).is_none(), "behind a link");
        fs::remove_file(at("file")).unwrap();
        rustix::fs::mkfifoat(CWD, at("file"), Mode::RUSR | Mode::WUSR).unwrap();
        assert!(reopened(&descriptor).is_none(), "a pipe, which would wait for a writer");
    }
}
