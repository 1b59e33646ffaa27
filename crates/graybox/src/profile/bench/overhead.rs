//! What a file system writes for a small file besides its data, which no account of a process has:
//! journal, inode tables, directories, allocation maps.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use discnice_sys::file;
use discnice_sys::process::thread_usage;
use discnice_sys::traffic::{self, disks};

use super::mounts::Mount;

/// Files made in a round, enough that what a transaction costs for itself hardly counts; and how many of them have a
/// folder for themselves, as in trees of sources.
const FILES: u64 = 2000;
const FOLDER: u64 = 10;
/// Data of each: a page.
const DATA: usize = 4096;
/// Data of a tiny file: half of what btrfs keeps in its trees (`max_inline`). The page that it
/// dirties counts as its data, for an account as for a prediction.
const TINY: usize = 1024;
/// Rounds. What others write meanwhile makes one more expensive, nothing makes it cheaper.
const ROUNDS: u32 = 3;

/// What making a file costs besides its data, in bytes for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Written beside its data.
    pub beside_data: u64,
    /// Written beside what the kernel charged.
    pub beside_account: u64,
    /// Written besides for the first one: the transaction's own.
    pub once: u64,
    /// Written for a tiny one beside its page; below zero where that is never written.
    pub tiny_beside_data: i64,
}

/// Makes files and counts what the disk writes; `None` where none is known below the folder, where its
/// counter lies each time, or if it was asked to end.
pub fn measure(dir: &Path, asked_to_end: &AtomicBool) -> io::Result<Option<Overhead>> {
    let Some(below) = disk_below(dir)? else { return Ok(None) };
    let mut least: Option<Overhead> = None;
    for _ in 0..ROUNDS {
        let of = |files, data| round((dir, asked_to_end), &below, files, data);
        let rounds = (of(1, &[BYTE; DATA])?, of(FILES, &[BYTE; DATA])?, of(FILES, &[BYTE; TINY])?);
        let (Some(one), Some(many), Some(tiny)) = rounds else { continue };
        let found = Overhead::of(&one, &many, &tiny);
        least = Some(least.map_or(found, |before| Overhead {
            beside_data: before.beside_data.min(found.beside_data),
            beside_account: before.beside_account.min(found.beside_account),
            once: before.once.min(found.once),
            tiny_beside_data: before.tiny_beside_data.min(found.tiny_beside_data),
        }));
    }
    Ok(least)
}

/// What the disk wrote beside data and beside charges, in bytes, when so many files were made.
struct Round {
    files: u64,
    beside_data: i64,
    beside_account: u64,
}

impl Overhead {
    /// What makes the difference between one file and many is each file's, the rest of the one's the
    /// transaction's.
    fn of(one: &Round, many: &Round, tiny: &Round) -> Self {
        let files = (many.files - one.files).max(1);
        let more = |round: &Round| round.beside_data.saturating_sub(one.beside_data);
        let beside_data = more(many).max(0).unsigned_abs() / files;
        Self {
            beside_data,
            beside_account: many.beside_account.saturating_sub(one.beside_account) / files,
            once: one.beside_data.max(0).unsigned_abs().saturating_sub(beside_data),
            tiny_beside_data: more(tiny) / files.cast_signed(),
        }
    }
}

impl Round {
    /// Computes the overhead from the disk's counter before and after; `None` if the counter was
    /// not there, went down, or stood still although files were made.
    fn of(files: u64, charged: u64, before: Option<u64>, after: Option<u64>) -> Option<Self> {
        let written = after?.checked_sub(before?).filter(|written| *written > 0)?;
        Some(Self {
            files,
            beside_data: i64::try_from(written)
                .unwrap_or(i64::MAX)
                .saturating_sub_unsigned(files * DATA as u64),
            beside_account: written.saturating_sub(charged),
        })
    }
}

/// What the files are filled with.
const BYTE: u8 = 0x5A;

fn round(
    (dir, asked_to_end): (&Path, &AtomicBool),
    below: &Below,
    files: u64,
    data: &[u8],
) -> io::Result<Option<Round>> {
    let place = tempfile::tempdir_in(dir)?;
    let (root, base) = (File::open(place.path())?, File::open(&below.folder)?);
    // FUSE does not pass it on.
    let sync = || {
        let done = file::commit(root.as_raw_fd()).and_then(|()| file::commit(base.as_raw_fd()));
        done.map_err(|why| io::Error::from_raw_os_error(why.0))
    };
    sync()?;
    let (before, charged) = (written(below.disk), thread_usage().written);
    let mut folder = place.path().to_owned();
    for number in 0..files {
        if asked_to_end.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if number % FOLDER == 0 {
            folder = place.path().join(number.to_string());
            fs::create_dir(&folder)?;
        }
        fs::write(folder.join(format!("file{number}")), data)?;
    }
    let charged = thread_usage().written.saturating_sub(charged);
    sync()?;
    Ok(Round::of(files, charged, before, written(below.disk)))
}

/// Bytes that the disk or partition with this number has written; `None` if it is not listed.
fn written(id: u64) -> Option<u64> {
    let mut bytes = None;
    let read = disks(|disk| {
        if disk.id == id {
            bytes = Some(disk.moved.outward);
        }
    });
    read.ok().and(bytes)
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

/// Finds the disk below a folder. If a file system's own number is no disk's (btrfs, overlayfs,
/// bindfs), its disk is looked up by what it was mounted from.
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
    fn a_transactions_own_cost_is_told_from_that_of_files() {
        let made =
            |files, beside_data, beside_account| Round { files, beside_data, beside_account };
        let (one, many) = (made(1, 101_000, 90_000), made(2001, 2_101_000, 1_090_000));
        let found = Overhead::of(&one, &many, &made(2001, -1_899_000, 0));
        let each = Overhead {
            beside_data: 1000,
            beside_account: 500,
            once: 100_000,
            tiny_beside_data: -1000,
        };
        assert_eq!(found, each);
        let noise = Overhead::of(&made(1, 50, 50), &made(2000, 0, 0), &made(2000, 50, 0));
        let nothing = Overhead { beside_data: 0, beside_account: 0, once: 50, tiny_beside_data: 0 };
        assert_eq!(noise, nothing);
    }

    #[test]
    fn a_counter_that_lies_says_nothing() {
        let lies = [(Some(5000), Some(4999)), (Some(5000), Some(5000)), (None, Some(5000))];
        for (before, after) in lies.into_iter().chain([(Some(5000), None), (None, None)]) {
            assert!(Round::of(1, 0, before, after).is_none(), "{before:?} {after:?}");
        }
        let round = Round::of(1, 4096, Some(0), Some(u64::MAX)).expect("an enormous one");
        let least = Round::of(FILES, u64::MAX, Some(0), Some(1)).expect("hardly anything");
        let found = Overhead::of(&round, &round, &least);
        assert_eq!((found.beside_data, found.beside_account), (0, 0));
    }

    #[test]
    fn files_are_made_and_gone() {
        let dir = tempfile::tempdir().unwrap();
        // What it costs depends on the file system; a hundred blocks it never does.
        let found = measure(dir.path(), &AtomicBool::new(false)).unwrap();
        assert!(found.is_none_or(|found| found.beside_data < 100 * DATA as u64), "{found:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(measure(dir.path(), &AtomicBool::new(true)).unwrap(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
