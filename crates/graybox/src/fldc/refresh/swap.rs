//! Exchanges a file for its copy while it is not open elsewhere, and settles what is left over.
//!
//! The kernel has no rename that compares first. So a write lease on both inodes makes openers
//! wait, one renameat2(2) exchanges the names, and what came out is looked at: if it is not the
//! inode that was checked, another program has put a new file there in between, and it goes back.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::content::{self, Hash};
use super::left::Why;
use super::marker::Staged;
use super::meta::{self, open_quietly};
use super::raw::{Lease, NoLease};
use super::status::{Meta, stat, stat_open};
use super::work::Area;

/// Time after the last exchange until originals are removed.
pub const GRACE: Duration = Duration::from_millis(100);

/// Exchanges after which one with another program that renames all the time is given up.
const EXCHANGES: u32 = 64;
/// How often, and after what pauses, an original that is in use after all is looked at again.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A change time that no file has: the original may have changed in the moment of the exchange.
pub const DOUBTFUL: (i64, u32) = (i64::MIN, 0);

/// A name in the directory, and the name in the work area that it is exchanged with.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'a> {
    /// Directory of the file.
    pub dir: BorrowedFd<'a>,
    /// Name of the file there.
    pub name: &'a CStr,
    /// The work area.
    pub area: &'a Area<'a>,
    /// Name in the work area.
    pub file: &'a CStr,
}

/// What became of a file in the work area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The file was not needed any more and is removed.
    Removed,
    /// The original was put back, as another process uses it; the copy is removed.
    PutBack,
    /// Both the file and what is in the directory were changed: it is kept in the work area.
    Kept,
}

impl Spot<'_> {
    /// Inode of what is in the work area.
    pub fn inside(&self) -> rustix::io::Result<u64> {
        stat(self.area.fd(), self.file).map(|meta| meta.ino)
    }

    /// Exchanges once the inode `expected` for what is in the work area, and returns true if just
    /// that came out. If something else did, it is newer than what was put there for it, and goes
    /// back: then false, and the directory is as if nothing had been done.
    ///
    /// # Errors
    /// As renameat2(2); `EBUSY` if another program renames all the time.
    pub fn exchange_for(&self, mut expected: u64) -> rustix::io::Result<bool> {
        let mut put = self.inside()?;
        for round in 0..EXCHANGES {
            let (area, dir) = (self.area.fd(), self.dir);
            match rustix::fs::renameat_with(area, self.file, dir, self.name, RenameFlags::EXCHANGE)
            {
                // What would go back was removed by its owner in the meantime.
                Err(Errno::NOENT) if round > 0 => return Ok(false),
                other => other?,
            }
            let out = self.inside()?;
            if out == expected {
                return Ok(round == 0);
            }
            (expected, put) = (put, out);
        }
        Err(Errno::BUSY)
    }

    //= gray-box/4.2.2-atomic
    /// Exchanges the file for its copy, if neither is open elsewhere and the file still is `wanted`, with these contents if
    /// they are given; returns its change time afterwards, for [`Spot::settle`].
    ///
    /// # Errors
    /// Why not; the directory is as before then.
    pub fn exchange(
        &self,
        staged: &Staged,
        wanted: &Meta,
        contents: Option<&Hash>,
        force: bool,
    ) -> Result<(i64, u32), Why> {
        let old = File::from(open_quietly(self.dir, self.name)?);
        let new = open_quietly(self.area.fd(), self.file)?;
        let (old_lease, new_lease) = (lease(old.as_fd(), force)?, lease(new.as_fd(), force)?);
        if !wanted.unchanged(&stat_open(old.as_fd())?) {
            return Err(Why::Changed);
        }
        if let Some(contents) = contents
            && content::hash(&old, wanted.size)? != *contents
        {
            return Err(Why::Changed);
        }
        if !self.exchange_for(staged.old)? {
            // The copy, or a file that was replaced by a newer one before it went back.
            self.area.unlink(self.file)?;
            return Err(Why::Changed);
        }
        let unbroken = |lease: &Option<Lease<'_>>| lease.as_ref().is_none_or(Lease::is_unbroken);
        let now = stat_open(old.as_fd())?;
        let calm = now.facts() == staged.facts
            && now.nlink == wanted.nlink
            && meta::same(old.as_fd(), new.as_fd())?
            && unbroken(&old_lease);
        if calm {
            return Ok(now.ctime);
        }
        let unused = is_as_staged(&stat_open(new.as_fd())?, staged) && unbroken(&new_lease);
        if unused && self.exchange_for(staged.new)? {
            self.area.unlink(self.file)?;
            return Err(if unbroken(&old_lease) { Why::Changed } else { Why::InUse });
        }
        Ok(DOUBTFUL)
    }

    /// Decides on what is in the work area after an exchange: an original that is as it was, and
    /// that is not open elsewhere, is removed; another goes back to its place. `changed` is its change
    /// time after the exchange, if known.
    ///
    /// # Errors
    /// As the system calls.
    pub fn settle(
        &self,
        staged: &Staged,
        changed: Option<(i64, u32)>,
        force: bool,
    ) -> Result<Settled, Why> {
        for _ in 0..LOOKS {
            let old = open_quietly(self.area.fd(), self.file)?;
            let lease = lease(old.as_fd(), force);
            let now = stat_open(old.as_fd())?;
            let untouched =
                now.facts() == staged.facts && changed.is_none_or(|changed| changed == now.ctime);
            if lease.is_ok() && untouched {
                self.area.unlink(self.file)?;
                return Ok(Settled::Removed);
            }
            if self.put_back(staged, force)? {
                return Ok(Settled::PutBack);
            }
            if lease.is_ok() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Settled::Kept)
    }

    /// Puts what is in the work area back to its place and removes the copy that is there, if that
    /// was neither changed nor opened since.
    ///
    /// # Errors
    /// As the system calls; a copy that is gone is no error.
    pub fn put_back(&self, staged: &Staged, force: bool) -> Result<bool, Why> {
        let new = match open_quietly(self.dir, self.name) {
            Err(Errno::NOENT | Errno::LOOP | Errno::AGAIN) => return Ok(false),
            other => other?,
        };
        let Ok(lease) = lease(new.as_fd(), force) else { return Ok(false) };
        if !is_as_staged(&stat_open(new.as_fd())?, staged) {
            return Ok(false);
        }
        if !self.exchange_for(staged.new)? {
            return Ok(false);
        }
        let now = stat_open(new.as_fd())?;
        let unbroken = lease.as_ref().is_none_or(Lease::is_unbroken);
        if unbroken && is_as_staged(&now, staged) {
            self.area.unlink(self.file)?;
            return Ok(true);
        }
        // Opened in that very moment: its user is to find it where it was.
        let here = stat(self.dir, self.name)?.ino;
        self.exchange_for(here)?;
        Ok(false)
    }
}

fn is_as_staged(meta: &Meta, staged: &Staged) -> bool {
    meta.ino == staged.new && meta.facts() == staged.facts && meta.nlink == 1
}

/// A lease, or none where it is not told whether a file is in use and `force` allows that.
fn lease(fd: BorrowedFd<'_>, force: bool) -> Result<Option<Lease<'_>>, Why> {
    match Lease::take(fd) {
        Ok(lease) => Ok(Some(lease)),
        Err(NoLease::InUse) => Err(Why::InUse),
        Err(NoLease::Unknown) if force => Ok(None),
        Err(NoLease::Unknown) => Err(Why::NoLease),
    }
}
