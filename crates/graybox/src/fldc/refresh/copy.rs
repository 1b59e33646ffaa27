//! Copies files into the work area and checks the copies against the originals.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::content::{self, Hash};
use super::error::Context;
use super::left::Why;
use super::marker::{Staged, WorkFile};
use super::meta::{self, open_quietly};
use super::place::cstring;
use super::raw::{Lease, NoLease};
use super::status::{Meta, stat_open};
use super::work::Area;

/// Files changed this short a time ago are not copied yet: a change after the copying could bear
/// the same time stamp, which on kernels before 6.13 moves in steps of up to 10 ms.
const SETTLED: Duration = Duration::from_millis(20);

/// A copy in the work area.
#[derive(Debug)]
pub struct Copied {
    /// Member of the tree.
    pub index: usize,
    /// Its name in the work area.
    pub name: CString,
    /// What that name says.
    pub staged: Staged,
    /// Hash of what it has.
    pub hash: Hash,
}

/// Copies the file `name` in `dir`, which was `wanted` at the scan.
///
/// # Errors
/// `Changed` if it is not that by now, or not at the end; [`Why`] for the others.
pub fn copy(
    area: &Area<'_>,
    (dir, name): (BorrowedFd<'_>, &std::ffi::CStr),
    (index, wanted): (usize, &Meta),
    without_lease: bool,
) -> Result<Copied, Why> {
    let from = File::from(open_quietly(dir, name)?);
    match Lease::take(from.as_fd()) {
        Err(NoLease::InUse) => return Err(Why::InUse),
        Err(NoLease::Unknown) if !without_lease => return Err(Why::NoLease),
        _ => {}
    }
    wait_until_settled(wanted);
    if !wanted.unchanged(&stat_open(from.as_fd())?) {
        return Err(Why::Changed);
    }
    let making = cstring(WorkFile::Making(index as u64).to_string().as_bytes());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let to = File::from(rustix::fs::openat(area.fd(), &making, flags, mode)?);
    let make = || -> Result<Copied, Why> {
        meta::copy_flags(from.as_fd(), to.as_fd()).map_err(lost)?;
        meta::copy_project(from.as_fd(), to.as_fd()).map_err(lost)?;
        let hash = content::copy(&from, &to, wanted.size)?;
        meta::copy(from.as_fd(), to.as_fd(), wanted).map_err(lost)?;
        if !wanted.unchanged(&stat_open(from.as_fd())?) {
            return Err(Why::Changed);
        }
        let new = stat_open(to.as_fd())?.ino;
        let staged = Staged { old: wanted.ino, new, facts: wanted.facts() };
        let name = cstring(WorkFile::Staged(staged).to_string().as_bytes());
        rustix::fs::renameat(area.fd(), &making, area.fd(), &name)?;
        Ok(Copied { index, name, staged, hash })
    };
    let made = make();
    if made.is_err() {
        let _ = area.unlink(&making);
    }
    made
}

/// Returns why there is no copy, of an error in carrying something over.
fn lost(error: Errno) -> Why {
    match error {
        Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL => {
            Why::Property("a copy could not have its group or attributes")
        }
        other => other.into(),
    }
}

/// Waits until the last change known is so long ago that a later one bears another time stamp.
fn wait_until_settled(meta: &Meta) {
    let Ok(seconds) = u64::try_from(meta.ctime.0) else { return };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, meta.ctime.1);
    // A time to come is that of a clock that was set back.
    if let Ok(age) = SystemTime::now().duration_since(changed)
        && age < SETTLED
    {
        std::thread::sleep(SETTLED.saturating_sub(age));
    }
}

impl Copied {
    /// Reads the copy back from the disk and compares it with what was read of the original, and
    /// its metadata with the original's.
    ///
    /// # Errors
    /// `Changed` if the original is another by now; as the system calls.
    pub fn verify(
        &self,
        area: &Area<'_>,
        (dir, name): (BorrowedFd<'_>, &std::ffi::CStr),
    ) -> Result<bool, Why> {
        let copy = File::from(open_quietly(area.fd(), &self.name)?);
        let original = open_quietly(dir, name)?;
        if stat_open(original.as_fd())?.ino != self.staged.old {
            return Err(Why::Changed);
        }
        let content = content::hash(&copy, self.staged.facts.size)? == self.hash;
        if content && meta::same(original.as_fd(), copy.as_fd())? {
            return Ok(true);
        }
        // Contents were compared with what was read; metadata with what is there now.
        if content { Err(Why::Changed) } else { Ok(false) }
    }
}

/// Removes copies that are not wanted.
pub fn discard(area: &Area<'_>, copied: &[Copied]) -> super::error::Result<()> {
    copied.iter().try_for_each(|copy| area.unlink(&copy.name).doing("clear", || area.shown()))
}
