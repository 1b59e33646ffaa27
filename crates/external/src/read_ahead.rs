//! Read-ahead of the held: what one read brings in is what it asks for.
//!
//! The kernel reads ahead by windows that grow to the device's (8 MiB on some machines). A program that runs
//! until its account moves has then read seconds' worth of a low limit at once, and writes that much before
//! it is seen again. Our library switches read-ahead off for a descriptor (`POSIX_FADV_RANDOM`) and
//! reads ahead in slices; from outside the same switch is reached by a borrowed descriptor, pidfd_getfd(2),
//! which shares its open file description. It is asked for only while the process stands.
//!
//! Descriptors that can write are left alone: a second one, if only for a microsecond, would keep
//! a program that was just written from being executed (`ETXTBSY`). Page faults are not reached: the kernel
//! reads around them by the mapping's advice (mm/filemap.c, `do_sync_mmap_readahead`).

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use discnice_budget::{Class, Direction};
use discnice_sys::{file, mapped};
use discnice_units::{Nanos, Rate};

use crate::descriptors;
use crate::process::Pinned;

/// From this limit on whoever reads page by page would not reach it without read-ahead (facts of ADR 1:
/// 16 MB/s).
const PAGE_BY_PAGE: Rate = Rate::per_second(16 << 20);
/// A window that the limit pays for in less time is no burst.
const BURST: Nanos = Nanos::from_millis(50);
/// So much was read since descriptors were looked at last: less than that is what calls ask for, one by one.
const GROWN: u64 = 64 << 10;
/// Descriptors of a process that are looked at.
const DESCRIPTORS: usize = 256;

/// What became of one process's read-ahead.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// Bytes read since its descriptors were looked at.
    read: u64,
    /// Files for which it was switched off: descriptor and inode.
    off: HashSet<(i32, u64)>,
}

impl ReadAhead {
    /// The process has read so many bytes.
    pub fn note(&mut self, bytes: u64) {
        self.read = self.read.saturating_add(bytes);
    }

    /// Whether a process that has read so much before it was known is likely to have windows in progress: then
    /// its descriptors are looked at when it stands next.
    pub fn expect(&mut self, read: u64) -> bool {
        self.read = self.read.max(read);
        read >= GROWN
    }

    /// Switches it off where it is a burst under the class's limit. The process still stands.
    pub fn shape(&mut self, process: &Pinned, class: &Class) {
        let rate = class.rule(Direction::Read).rate;
        if rate >= PAGE_BY_PAGE || self.read < GROWN {
            return;
        }
        let read = std::mem::take(&mut self.read);
        let burst =
            |device| mapped::read_around(device).filter(|window| *window > rate.units_in(BURST));
        for found in files(process, burst) {
            let is_new = self.off.insert((found.number, found.inode));
            if switch_off(&found.borrowed, is_new) && (is_new || read > found.window / 2) {
                break_chain(&found.borrowed, read.min(2 * found.window));
            }
        }
    }

    /// Switches it on again where the limit does not ask for that any more. The advice that the program
    /// may have given by itself is forgotten.
    pub fn follow(&mut self, process: &Pinned, class: &Class) {
        if class.rule(Direction::Read).rate >= PAGE_BY_PAGE {
            self.give_back(process);
        }
    }

    /// Switches it on again.
    pub fn give_back(&mut self, process: &Pinned) {
        if self.off.is_empty() {
            return;
        }
        for found in files(process, |_| Some(0)) {
            if self.off.remove(&(found.number, found.inode)) {
                let _ = file::advise(found.borrowed.as_raw_fd(), libc::POSIX_FADV_NORMAL);
            }
        }
        self.off.clear();
    }
}

/// Whether the kernel reads no more than is asked for from now on. `POSIX_FADV_SEQUENTIAL` doubles the windows, and what goes
/// on keeps them so; `POSIX_FADV_NORMAL` takes that back (mm/fadvise.c).
fn switch_off(borrowed: &OwnedFd, is_new: bool) -> bool {
    let fd = borrowed.as_raw_fd();
    if is_new {
        let _ = file::advise(fd, libc::POSIX_FADV_NORMAL);
    }
    file::advise(fd, libc::POSIX_FADV_RANDOM).is_ok()
}

/// Advice does not end what goes on: in each window one page is marked, and whoever reads that starts the
/// next one (mm/readahead.c, `page_cache_async_ra`, which does not ask for `FMODE_RANDOM`). So the window that is being read
/// and the next one, which it has started, are dropped, and read again when they are asked for; no more than was
/// read lately, as what others have in the cache is theirs. Where the offset stays zero, as for pread(2), nobody tells where they are.
fn break_chain(borrowed: &OwnedFd, ahead: u64) {
    if let Ok(position) = rustix::fs::tell(borrowed)
        && position > 0
    {
        let fd = borrowed.as_raw_fd();
        let _ = file::advise_range(fd, position, ahead, libc::POSIX_FADV_DONTNEED);
    }
}

/// A file that a process can only read.
struct Found {
    number: i32,
    inode: u64,
    /// Its device's window, in bytes.
    window: u64,
    borrowed: OwnedFd,
}

/// All files that the process can only read and whose device has a window that is `wanted`.
fn files(process: &Pinned, wanted: impl Fn(u64) -> Option<u64>) -> Vec<Found> {
    // Most lie on one device.
    let mut last = None;
    let find = |link: PathBuf| {
        let metadata = fs::metadata(&link).ok().filter(Metadata::is_file)?;
        let device = metadata.dev();
        let known = last.filter(|(known, _)| *known == device);
        let (_, window) = *last.insert(known.unwrap_or_else(|| (device, wanted(device))));
        let (number, window) = (descriptors::number(&link)?, window?);
        Some(Found { number, inode: metadata.ino(), window, borrowed: process.borrow(number)? })
    };
    let links = descriptors::of(process.id(), DESCRIPTORS);
    links.filter(|link| descriptors::can_write(link) == Some(false)).filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Which numbers of a process's descriptors are found.
    fn found(id: u32, wanted: bool) -> Vec<i32> {
        let process = crate::pin(id.cast_signed()).unwrap();
        let mut numbers: Vec<_> =
            files(&process, |_| wanted.then_some(0)).iter().map(|f| f.number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn files_that_can_only_be_read_are_found() {
        let mut file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.write_all(&[1; 4096]).unwrap();
        let name = file.path().display();
        let script = format!("exec 5<{name} 6<>{name} 7>>{name}; echo; read end");
        let mut command = Command::new("sh");
        let command = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut told).unwrap();
        // Some systems forbid even a parent to take descriptors.
        let seen = found(child.id(), true);
        assert!(seen.is_empty() || seen == [5], "{seen:?}: those that can write are left alone");
        assert!(found(child.id(), false).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
