//! Which pages of a mapping are mapped, and what a page fault there reads.

use crate::file::{read_small, read_small_at};
use crate::memory::PAGE;
use crate::raw::Errno;
use crate::residency::is_present;

/// Pages asked about at once.
const AT_ONCE: usize = 128;
/// Pages of a mapping that are looked at, from its beginning: that takes 10 ms.
const PAGES_MAX: usize = 1 << 20;

/// Calls `each` with every run of pages that are mapped, in order: the first and how many, both in pages
/// from `start`, a page's. /proc/PID/pagemap, proc_pid_pagemap(5)
///
/// # Errors
/// Whatever hides /proc from us.
pub fn runs(start: usize, length: usize, mut each: impl FnMut(u64, u64)) -> Result<(), Errno> {
    let pages = length.div_ceil(PAGE).min(PAGES_MAX);
    let (mut done, mut run) = (0, (0, 0));
    while done < pages {
        let mut words = [0u64; AT_ONCE];
        let count = (pages - done).min(AT_ONCE);
        let Some(wanted) = words.get_mut(..count) else { break };
        let place = (start / PAGE).saturating_add(done).saturating_mul(size_of::<u64>());
        read_small_at(c"/proc/self/pagemap", wanted, place as u64)?;
        for word in wanted {
            let (first, end) = run;
            if is_present(*word) {
                run = if first == end { (done, done + 1) } else { (first, done + 1) };
            } else if first < end {
                each(first as u64, (end - first) as u64);
                run = (0, 0);
            }
            done += 1;
        }
    }
    let (first, end) = run;
    if first < end {
        each(first as u64, (end - first) as u64);
    }
    Ok(())
}

/// How many bytes a page fault reads around itself on the file system of this device number (`st_dev`
/// of stat(2)): its device's read-ahead window. `None` where that is not told (btrfs, overlayfs).
/// Documentation/ABI/testing/sysfs-class-bdi; mm/filemap.c, `do_sync_mmap_readahead`
#[must_use]
pub fn read_around(device: u64) -> Option<u64> {
    // A partition's window is its disk's.
    [("/sys/class/bdi/", "/read_ahead_kb"), ("/sys/dev/block/", "/../queue/read_ahead_kb")]
        .iter()
        .find_map(|(before, after)| kibibytes(before, device, after))
}

fn kibibytes(before: &str, device: u64, after: &str) -> Option<u64> {
    let (mut path, mut text) = (Path { bytes: [0; 64], length: 0 }, [0; 24]);
    let id = crate::traffic::id_of(device);
    path.push(before.as_bytes());
    path.push_number(id >> 32);
    path.push(b":");
    path.push_number(id & u64::from(u32::MAX));
    path.push(after.as_bytes());
    let path = core::ffi::CStr::from_bytes_until_nul(&path.bytes).ok()?;
    let length = read_small(path, &mut text).ok()?;
    let digits = text.get(..length)?;
    digits.first().filter(|digit| digit.is_ascii_digit())?;
    Some(crate::lines::number(digits).saturating_mul(1024))
}

/// A path with numbers in it.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    fn push(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn push_number(&mut self, mut number: u64) {
        let (mut digits, mut from) = ([b'0'; 20], 19);
        while number >= 10 && from > 0 {
            if let Some(digit) = digits.get_mut(from) {
                *digit = b'0' + (number % 10) as u8;
            }
            number /= 10;
            from -= 1;
        }
        if let Some(digit) = digits.get_mut(from) {
            *digit = b'0' + number as u8;
        }
        self.push(digits.get(from..).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::os::fd::AsRawFd;
    use std::vec::Vec;

    use super::*;
    use crate::residency::Mapping;

    #[test]
    fn what_was_touched_is_mapped() {
        let mut file = tempfile("touched");
        std::io::Write::write_all(&mut file, &[1; 64 * PAGE]).unwrap();
        let mapping = Mapping::of(file.as_raw_fd(), 0, 64 * PAGE as u64, libc::PROT_READ).unwrap();
        let seen = || {
            let mut all = Vec::new();
            runs(mapping.start, mapping.length, |first, count| all.push((first, count))).unwrap();
            all
        };
        assert!(seen().is_empty());
        // MADV_POPULATE_READ
        mapping.advise(0, 64 * PAGE, 22).unwrap();
        assert_eq!(seen(), [(0, 64)]);
    }

    #[test]
    fn runs_end_at_gaps_and_go_on_across_questions() {
        let pages = 2 * AT_ONCE + 8;
        let mut file = tempfile("gaps");
        std::io::Write::write_all(&mut file, &std::vec![1; pages * PAGE]).unwrap();
        let length = (pages * PAGE) as u64;
        let mapping = Mapping::of(file.as_raw_fd(), 0, length, libc::PROT_READ).unwrap();
        mapping.advise(0, mapping.length, 22).unwrap();
        for gap in [0, 5, AT_ONCE] {
            mapping.advise(gap * PAGE, PAGE, libc::MADV_DONTNEED).unwrap();
        }
        let mut all = Vec::new();
        runs(mapping.start, mapping.length, |first, count| all.push((first, count))).unwrap();
        let border = AT_ONCE as u64;
        assert_eq!(all, [(1, 4), (6, border - 6), (border + 1, border + 7)]);
    }

    fn tempfile(name: &str) -> std::fs::File {
        let path =
            std::env::temp_dir().join(std::format!("discnice-{name}-{}", std::process::id()));
        let options = &mut std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    #[test]
    fn the_window_of_a_disk_is_told() {
        let status = |path| std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).unwrap());
        assert_eq!(read_around(status("/proc")), None, "it has none");
        let mut path = Path { bytes: [0; 64], length: 0 };
        [0, 7, 10, 259, 1_048_575].iter().for_each(|number| {
            path.push_number(*number);
            path.push(b":");
        });
        assert_eq!(path.bytes.get(..path.length), Some(&b"0:7:10:259:1048575:"[..]));
    }
}
