//! Preserves the modification times of directories while their entries are exchanged.
//!
//! A time is set back only if the directory holds what it held before: a program that looks for
//! new files by the directory's time must not miss one.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{Dir, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use super::marker::Touched;
use super::status::stat_open;

/// How often a directory that changes is looked at.
const LOOKS: u32 = 5;

/// Hash of the names and inodes of a directory; of `replaced` copies, the originals' inodes.
fn entries(dir: BorrowedFd<'_>, replaced: &HashMap<u64, u64>) -> rustix::io::Result<u64> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let ino = replaced.get(&entry.ino()).copied().unwrap_or(entry.ino());
        let name = entry.file_name().to_bytes();
        if name != b".." {
            found.push([name, b"\0", &ino.to_le_bytes()].concat());
        }
    }
    found.sort_unstable();
    let hash = blake3::hash(&found.concat());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    Ok(u64::from_le_bytes(first))
}

/// What the directory is before any exchange in it.
///
/// # Errors
/// As readdir(3); `EBUSY` if it changes all the time.
pub fn before(dir: BorrowedFd<'_>) -> rustix::io::Result<Touched> {
    for _ in 0..LOOKS {
        let meta = stat_open(dir)?;
        let entries = entries(dir, &HashMap::new())?;
        if stat_open(dir)?.mtime == meta.mtime {
            return Ok(Touched { ino: meta.ino, mtime: meta.mtime, entries });
        }
    }
    Err(Errno::BUSY)
}

//= gray-box/4.2.2-times
/// Sets the time back, unless the directory changed by more than the exchanges in `replaced`.
///
/// # Errors
/// As utimensat(2).
pub fn restore(
    dir: BorrowedFd<'_>,
    before: &Touched,
    replaced: &HashMap<u64, u64>,
) -> rustix::io::Result<()> {
    if entries(dir, replaced)? != before.entries {
        return Ok(());
    }
    let (tv_sec, nanos) = before.mtime;
    set_mtime(dir, Timespec { tv_sec, tv_nsec: nanos.into() })?;
    if entries(dir, replaced)? != before.entries {
        set_mtime(dir, Timespec { tv_sec: 0, tv_nsec: UTIME_NOW })?;
    }
    Ok(())
}

fn set_mtime(dir: BorrowedFd<'_>, time: Timespec) -> rustix::io::Result<()> {
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    rustix::fs::futimens(dir, &Timestamps { last_access: omit, last_modification: time })
}
