//! Read-ahead of the held: what one read brings in is what it asks for.
//!
//! The kernel reads ahead by windows that grow to the device's (8 MiB on some machines). A program that runs
//! until its account moves has then read seconds' worth of a low limit at once, and writes that much before
//! it is seen again. Our library switches read-ahead off for a descriptor (`POSIX_FADV_RANDOM`) and
//! reads ahead in slices; from outside the same switch is reached by a borrowed descriptor, pidfd_getfd(2),
//! which shares its open file description. It is switched off only while the process stands, and on again at any time.
//!
//! Descriptors that can write are left alone: a second one, if only for a microsecond, would keep
//! a program that was just written from being executed (`ETXTBSY`). Page faults are not reached: the kernel
//! reads around them by the mapping's advice (mm/filemap.c, `do_sync_mmap_readahead`).

mod marked_pages;

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use discnice_ledger::{Class, Direction};
use discnice_sys::{file, mapped};
use discnice_units::{Moment, Nanos, Rate};

use crate::process::{Pinned, descriptors, local_files};
use crate::tuning;

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
    switched_at: Moment,
    /// Until when it keeps its read-ahead, and for how long it did so last.
    kept: (Moment, Nanos),
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
        read >= tuning::read_ahead::GROWN
    }

    /// Switches it off where it is a burst under the class's limit. The process still stands.
    pub fn shape(&mut self, process: &Pinned, class: &Class, now: Moment) {
        let rate = class.rule(Direction::Read).rate;
        if rate.is_unlimited() || self.read < tuning::read_ahead::GROWN || now < self.kept.0 {
            return;
        }
        let read = std::mem::take(&mut self.read);
        let mut calls = None;
        for found in files(process, |device| bursting(device, rate)) {
            let is_new = self.off.insert((found.number, found.inode));
            if switch_off(&found.borrowed, is_new) && (is_new || read > found.window / 2) {
                let calls = calls.get_or_insert_with(|| marked_pages::calls_of(process.id()));
                let places = marked_pages::places(found.number, &found.borrowed, calls);
                marked_pages::end(&found.borrowed, &places, read.min(2 * found.window));
                if places.is_empty() && is_new {
                    marked_pages::drop_own(&found.borrowed, self.total);
                }
            }
        }
        self.switched_at = now;
    }

    /// Switches it on again where the limit does not ask for that any more. The advice that the program
    /// may have given by itself is forgotten.
    pub fn follow(&mut self, process: &Pinned, class: &Class) {
        let rate = class.rule(Direction::Read).rate;
        if self.off.is_empty() {
            return;
        }
        if rate.is_unlimited() || files(process, |device| bursting(device, rate)).is_empty() {
            self.give_back(process);
        }
    }

    /// It runs and is not held. Switches its read-ahead on again if it does not reach the limit without.
    pub fn doubt(&mut self, process: &Pinned, class: &Class, now: Moment) {
        if !self.off.is_empty() && self.is_needed(class.rule(Direction::Read).rate, now) {
            self.give_back(process);
        }
    }

    /// Whether it has run for a whole trial, read, and not been held; then it keeps its read-ahead for a while.
    fn is_needed(&mut self, rate: Rate, now: Moment) -> bool {
        if now < self.switched_at.plus(tuning::read_ahead::TRIAL) {
            return false;
        }
        self.switched_at = now;
        let read = std::mem::take(&mut self.read);
        let needed = rate >= tuning::read_ahead::PAGE_BY_PAGE
            && read >= rate.units_in(tuning::read_ahead::TRIAL) / tuning::read_ahead::IDLE_SHARE;
        if needed {
            let longer = Nanos(
                self.kept
                    .1
                    .0
                    .saturating_mul(2)
                    .clamp(tuning::read_ahead::KEEP_LEAST.0, tuning::read_ahead::KEEP_MOST.0),
            );
            self.kept = (now.plus(longer), longer);
        }
        needed
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
    mapped::read_around(device).filter(|window| *window > rate.units_in(tuning::read_ahead::BURST))
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

/// A file that a process can only read.
struct Found {
    number: i32,
    inode: u64,
    /// Its device's window, in bytes.
    window: u64,
    borrowed: OwnedFd,
}

/// Returns all files that the process can only read and that lie on a device with a window that is
/// `wanted`.
fn files(process: &Pinned, wanted: impl Fn(u64) -> Option<u64>) -> Vec<Found> {
    // Most lie on one device.
    let mut last = None;
    let find = |link: PathBuf| {
        let metadata = local_files::status(&link).filter(Metadata::is_file)?;
        let device = metadata.dev();
        let known = last.filter(|(known, _)| *known == device);
        let (_, window) = *last.insert(known.unwrap_or_else(|| (device, wanted(device))));
        let (number, window) = (descriptors::number(&link)?, window?);
        Some(Found { number, inode: metadata.ino(), window, borrowed: process.borrow(number)? })
    };
    let links = descriptors::of(process.id(), tuning::read_ahead::DESCRIPTORS);
    links.filter(|link| descriptors::can_write(link) == Some(false)).filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_needs_read_ahead_keeps_it_longer_each_time() {
        let mut ahead = ReadAhead::default();
        let mut now = Moment(1_000 * Nanos::SECOND.0);
        let mut needs = |mebibytes: u64, read: u64, passes: Nanos| {
            now = now.plus(passes);
            ahead.note(read << 20);
            let needed = ahead.is_needed(Rate::per_second(mebibytes << 20), now);
            (needed, ahead.kept.0.since(now))
        };
        assert!(!needs(5, 3, tuning::read_ahead::TRIAL).0, "page by page is enough");
        assert!(!needs(50, 1, tuning::read_ahead::TRIAL).0, "idle");
        assert!(!needs(50, 20, Nanos::from_millis(500)).0, "not yet");
        assert_eq!(needs(50, 0, Nanos::from_millis(500)), (true, tuning::read_ahead::KEEP_LEAST));
        assert_eq!(
            needs(50, 20, tuning::read_ahead::TRIAL),
            (true, Nanos(2 * tuning::read_ahead::KEEP_LEAST.0))
        );
        assert_eq!(
            (0..20).map(|_| needs(50, 20, tuning::read_ahead::TRIAL)).last(),
            Some((true, tuning::read_ahead::KEEP_MOST))
        );
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
