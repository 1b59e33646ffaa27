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
use discnice_sys::{file, mapped, pagecache};
use discnice_units::{Nanos, Rate};

use crate::descriptors;
use crate::process::{self, Call, Pinned};

/// A window that the limit pays for in less time is no burst.
const BURST: Nanos = Nanos::from_millis(50);
/// So much was read since descriptors were looked at last: less than that is what calls ask for, one by one.
const GROWN: u64 = 64 << 10;
/// Descriptors of a process that are looked at.
const DESCRIPTORS: usize = 256;
/// Threads whose calls are looked at.
const THREADS: usize = 1024;
/// Below this limit even who reads page by page reaches it without read-ahead (facts of ADR 1: 16 MB/s).
const PAGE_BY_PAGE: Rate = Rate::per_second(16 << 20);
/// Above it, who reads for so long without being held, though not idle, is taken to need read-ahead.
const TRIAL: Nanos = Nanos::from_millis(1_000);
/// Less than this part of what the limit allows is idle.
const IDLE: u64 = 16;
/// So long it keeps its read-ahead then, and twice as long each time it was found to need it.
const KEEPS: (Nanos, Nanos) = (Nanos::from_millis(8_000), Nanos::from_millis(600_000));

/// What became of one process's read-ahead.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// Bytes read since its descriptors were looked at.
    read: u64,
    /// Bytes read at all, as far as known.
    total: u64,
    /// Files for which it was switched off: descriptor and inode.
    off: HashSet<(i32, u64)>,
    /// When that was done last.
    switched_at: Nanos,
    /// Until when it keeps its read-ahead, and for how long it did so last.
    kept: (Nanos, Nanos),
}

impl ReadAhead {
    /// The process has read so many bytes.
    pub fn note(&mut self, bytes: u64) {
        self.read = self.read.saturating_add(bytes);
        self.total = self.total.saturating_add(bytes);
    }

    /// Whether a process that has read so much before it was known is likely to have windows in progress: then
    /// its descriptors are looked at when it stands next.
    pub fn expect(&mut self, read: u64) -> bool {
        self.read = self.read.max(read);
        self.total = self.total.max(read);
        read >= GROWN
    }

    /// Switches it off where it is a burst under the class's limit. The process still stands.
    pub fn shape(&mut self, process: &Pinned, class: &Class, now: Nanos) {
        let rate = class.rule(Direction::Read).rate;
        if rate.is_unlimited() || self.read < GROWN || now < self.kept.0 {
            return;
        }
        let read = std::mem::take(&mut self.read);
        let mut calls = None;
        for found in files(process, |device| bursting(device, rate)) {
            let is_new = self.off.insert((found.number, found.inode));
            if switch_off(&found.borrowed, is_new) && (is_new || read > found.window / 2) {
                let calls = calls.get_or_insert_with(|| calls_of(process.id()));
                let places = places(&found, calls);
                if places.is_empty() && is_new {
                    drop_own(&found.borrowed, self.total);
                }
                break_chains(&found.borrowed, &places, read.min(2 * found.window));
            }
        }
        self.switched_at = now;
    }

    /// Switches it on again where the limit does not ask for that any more. The advice that the program
    /// may have given by itself is forgotten.
    pub fn follow(&mut self, process: &Pinned, class: &Class) {
        let rate = class.rule(Direction::Read).rate;
        if rate.is_unlimited() || files(process, |device| bursting(device, rate)).is_empty() {
            self.give_back(process);
        }
    }

    /// It runs and is not held. Switches its read-ahead on again if it does not reach the limit without.
    pub fn doubt(&mut self, process: &Pinned, class: &Class, now: Nanos) {
        if self.off.is_empty() || now < self.switched_at.plus(TRIAL) {
            return;
        }
        let rate = class.rule(Direction::Read).rate;
        let read = std::mem::take(&mut self.read);
        self.switched_at = now;
        if rate >= PAGE_BY_PAGE && read >= rate.units_in(TRIAL) / IDLE {
            let longer = Nanos(self.kept.1.0.saturating_mul(2).clamp(KEEPS.0.0, KEEPS.1.0));
            self.kept = (now.plus(longer), longer);
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

/// The window of a device, in bytes, if that is a burst at this rate.
fn bursting(device: u64, rate: Rate) -> Option<u64> {
    mapped::read_around(device).filter(|window| *window > rate.units_in(BURST))
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

/// What the threads of a process that stands were doing.
fn calls_of(id: u32) -> Vec<Call> {
    let call = |thread| process::call(id, thread);
    process::threads(id).take(THREADS).filter_map(call).collect()
}

/// Where in a file the process reads on: at its offset, which stays zero for pread(2), or behind what its threads ask
/// for at places of their own.
fn places(found: &Found, calls: &[Call]) -> Vec<u64> {
    let own = rustix::fs::tell(&found.borrowed).ok().filter(|place| *place > 0);
    let read = |call: &Call| match call.arguments {
        [fd, _, count, place, ..] if call.number == libc::SYS_pread64 => {
            (fd == found.number as u64).then(|| place.saturating_add(count))
        }
        // How long its pieces are only its memory tells.
        [fd, _, _, place, ..] if [libc::SYS_preadv, libc::SYS_preadv2].contains(&call.number) => {
            (fd == found.number as u64).then_some(place)
        }
        _ => None,
    };
    own.into_iter().chain(calls.iter().filter_map(read)).collect()
}

/// Advice does not end what goes on: in each window one page is marked, and whoever reads that starts the
/// next one (mm/readahead.c, `page_cache_async_ra`, which does not ask for `FMODE_RANDOM`). So the windows that are being read
/// and the next ones, which they have started, are dropped, and read again when they are asked for; no more than was
/// read lately, as what others have in the cache is theirs.
fn break_chains(borrowed: &OwnedFd, places: &[u64], ahead: u64) {
    for place in places {
        let fd = borrowed.as_raw_fd();
        let _ = file::advise_range(fd, *place, ahead, libc::POSIX_FADV_DONTNEED);
    }
}

/// The same where nobody tells the places (io_uring): all that is cached of the file, if the process itself can have
/// read all of it.
fn drop_own(borrowed: &OwnedFd, read: u64) {
    let fd = borrowed.as_raw_fd();
    let cached = pagecache::cachestat(fd, 0, u64::MAX).map_or(u64::MAX, |counts| counts.cached);
    if cached.saturating_mul(pagecache::page_size()) <= read {
        let _ = file::advise(fd, libc::POSIX_FADV_DONTNEED);
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

    #[test]
    fn who_reads_by_pread_tells_where() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let found = Found { number: 7, inode: 1, window: 0, borrowed: file.into() };
        let call = |number, fd| Call { number, arguments: [fd, 0, 4096, 65_536, 0, 0] };
        let calls = [
            call(libc::SYS_pread64, 7),
            call(libc::SYS_pread64, 8),
            call(libc::SYS_read, 7),
            call(libc::SYS_preadv2, 7),
        ];
        assert_eq!(places(&found, &calls), [69_632, 65_536]);
        rustix::fs::seek(&found.borrowed, rustix::fs::SeekFrom::Start(9)).unwrap();
        assert_eq!(places(&found, &[]), [9]);
    }

    #[test]
    fn what_others_may_have_read_is_not_dropped() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let borrowed = OwnedFd::from(file);
        let cached = || pagecache::cachestat(borrowed.as_raw_fd(), 0, u64::MAX).map(|c| c.cached);
        let Ok(all) = cached() else { return };
        drop_own(&borrowed, 1 << 19);
        assert_eq!(cached(), Ok(all));
        drop_own(&borrowed, 1 << 20);
        assert_eq!(cached(), Ok(0));
    }

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
