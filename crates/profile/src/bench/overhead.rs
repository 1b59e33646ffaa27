//! What a file system writes for a small file besides its data, which no account of a process has:
//! journal, inode tables, directories, allocation maps.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use discnice_sys::process::thread_usage;
use discnice_sys::traffic::{self, disks};

use super::Mount;

/// Files made in a round, enough that what a transaction costs for itself hardly counts; and how many of them have a folder for themselves, as in trees of sources.
const FILES: u64 = 2000;
const FOLDER: u64 = 10;
/// Data of each: a page.
const DATA: u64 = 4096;
/// Rounds. What others write meanwhile makes one more expensive, nothing makes it cheaper.
const ROUNDS: u32 = 3;

/// In bytes for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Written beside its data.
    pub beside_data: u64,
    /// Written beside what the kernel charged.
    pub beside_account: u64,
}

/// Makes files and counts what the disk writes; `None` where none is known below the folder.
pub fn measure(dir: &Path) -> io::Result<Option<Overhead>> {
    let Some(below) = disk_below(dir)? else { return Ok(None) };
    let mut least: Option<Overhead> = None;
    for _ in 0..ROUNDS {
        let found = round(dir, &below)?;
        least = Some(least.map_or(found, |before| Overhead {
            beside_data: before.beside_data.min(found.beside_data),
            beside_account: before.beside_account.min(found.beside_account),
        }));
    }
    Ok(least)
}

fn round(dir: &Path, below: &Below) -> io::Result<Overhead> {
    let place = tempfile::tempdir_in(dir)?;
    let (root, base) = (File::open(place.path())?, File::open(&below.folder)?);
    // FUSE does not pass it on.
    let sync = || rustix::fs::syncfs(root.as_fd()).and_then(|()| rustix::fs::syncfs(base.as_fd()));
    sync()?;
    let (before, charged) = (written(below.disk), thread_usage().written);
    let mut folder = place.path().to_owned();
    for number in 0..FILES {
        if number % FOLDER == 0 {
            folder = place.path().join(number.to_string());
            fs::create_dir(&folder)?;
        }
        fs::write(folder.join(format!("file{number}")), [0x5A; DATA as usize])?;
    }
    let charged = thread_usage().written.saturating_sub(charged);
    sync()?;
    let written = written(below.disk).saturating_sub(before);
    Ok(Overhead {
        beside_data: written.saturating_sub(FILES * DATA) / FILES,
        beside_account: written.saturating_sub(charged) / FILES,
    })
}

/// Bytes that the disk or partition with this number has written.
fn written(id: u64) -> u64 {
    let mut bytes = 0;
    // Without /proc everything is zero, and so is the difference.
    let _ = disks(|disk| {
        if disk.id == id {
            bytes = disk.moved.outward;
        }
    });
    bytes
}

/// File systems on top of each other.
const STACKED: u32 = 4;

/// What lies below a folder.
struct Below {
    /// The disk or partition.
    disk: u64,
    /// A folder of the file system that writes to it.
    folder: PathBuf,
}

/// Finds it. A file system whose own number is no disk's (btrfs, overlayfs, bindfs) is looked up by what it
/// was mounted from.
fn disk_below(dir: &Path) -> io::Result<Option<Below>> {
    let dev = rustix::fs::stat(dir)?.st_dev;
    let own = disk(dev).map(|disk| Below { disk, folder: dir.to_owned() });
    Ok(own.or_else(|| disk_of_mount(dir, STACKED)))
}

fn disk_of_mount(dir: &Path, stacked: u32) -> Option<Below> {
    let mount = Mount::of(dir)?;
    let below = mount.below();
    let status = rustix::fs::stat(below).ok().filter(|_| below.is_absolute())?;
    if let Some(disk) = disk(status.st_rdev) {
        return Some(Below { disk, folder: dir.to_owned() });
    }
    if let Some(disk) = disk(status.st_dev) {
        return Some(Below { disk, folder: below.to_owned() });
    }
    disk_of_mount(below, stacked.checked_sub(1)?)
}

fn disk(dev: u64) -> Option<u64> {
    traffic::disk_of(dev).map(|_| traffic::id_of(dev))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_and_gone() {
        let dir = tempfile::tempdir().unwrap();
        // What it costs depends on the file system; a hundred blocks it never does.
        let found = measure(dir.path()).unwrap();
        assert!(found.is_none_or(|found| found.beside_data < 100 * DATA), "{found:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
