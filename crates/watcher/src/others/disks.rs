//! On which disks the files of a process lie, without touching any of them: a file system may be served by a program
//! that does not answer.
//!
//! proc_pid_fdinfo(5) says on which mount a descriptor's file is, proc_pid_mountinfo(5) of which device that is, and
//! proc_pid_maps(5) of which device what is mapped.

use std::path::Path;

use crate::process::{self, descriptors, mountinfo};
use crate::tuning;

/// File systems with files in memory.
const IN_MEMORY: [&str; 12] = [
    "tmpfs",
    "devtmpfs",
    "ramfs",
    "hugetlbfs",
    "proc",
    "sysfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "mqueue",
    "debugfs",
    "tracefs",
];

/// The numbers of the devices, major in the upper half, each once.
pub(crate) fn of(id: u32) -> Vec<u64> {
    devices(id, |_| true)
}

/// The devices as in [`of`], without those that are only written: the library in a process notes where it writes, and many a
/// job writes next to nothing but a log on the system's disk.
pub(crate) fn readable(id: u32) -> Vec<u64> {
    devices(id, descriptors::can_read)
}

fn devices(id: u32, counts: impl Fn(&Path) -> bool) -> Vec<u64> {
    let mut mounts = mountinfo::of(Some(id));
    mounts.retain(|mount| !IN_MEMORY.iter().any(|kind| mount.kind == *kind));
    let mut devices = mapped(&process::maps(id).unwrap_or_default());
    // An anonymous number is that of memory, unless it is mounted.
    devices
        .retain(|device| device >> 32 != 0 || mounts.iter().any(|mount| mount.device == *device));
    let open = open(id, counts);
    devices
        .extend(mounts.iter().filter(|mount| open.contains(&mount.id)).map(|mount| mount.device));
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// The mounts of those descriptors that count.
fn open(id: u32, counts: impl Fn(&Path) -> bool) -> Vec<u32> {
    let links = descriptors::of(id, tuning::others::DISK_DESCRIPTORS).filter(|link| counts(link));
    let mut mounts: Vec<u32> = links.filter_map(|link| descriptors::mount(&link)).collect();
    mounts.sort_unstable();
    mounts.dedup();
    mounts
}

/// The devices of what it has mapped as data: a program and its libraries have executable parts.
fn mapped(maps: &str) -> Vec<u64> {
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let (length, rights) = (hexadecimal(end)?.checked_sub(hexadecimal(start)?)?, words.next()?);
        let device = mountinfo::number(words.nth(1)?, 16)?;
        let inode: u64 = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
        Some((device, inode, rights.contains('x'), length))
    };
    let all: Vec<_> = maps.lines().filter_map(parse).collect();
    let is_program =
        |device, inode| all.iter().any(|one| (one.0, one.1, one.2) == (device, inode, true));
    all.iter()
        .filter(|(device, inode, _, length)| {
            *length >= tuning::others::LEAST_MAPPING && !is_program(*device, *inode)
        })
        .map(|(device, ..)| *device)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_sys::traffic;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_open_is_found() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let device = traffic::id_of(file.as_file().metadata().unwrap().dev());
        assert!(of(std::process::id()).contains(&device));
    }

    #[test]
    fn what_is_only_written_is_left_out() {
        let named = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let reader = std::fs::File::open(named.path()).unwrap();
        let log = std::fs::File::options().append(true).open(named.path()).unwrap();
        let counts = |wanted: &std::fs::File| {
            let is_wanted = |link: &Path| descriptors::number(link) == Some(wanted.as_raw_fd());
            let counts = |link: &Path| is_wanted(link) && descriptors::can_read(link);
            !open(std::process::id(), counts).is_empty()
        };
        assert_eq!((counts(&reader), counts(&log)), (true, false));
    }

    #[test]
    fn mapped_data_is_told_from_programs() {
        let maps = "\
55d0c0000000-55d0c1000000 r--p 00000000 fe:01 11 /usr/bin/large
55d0c1000000-55d0c1001000 r-xp 01000000 fe:01 11 /usr/bin/large
7f0000000000-7f0001000000 r--s 00000000 07:03 12 /mnt/data
7f0002000000-7f0002001000 r--s 00000000 07:04 13 /mnt/small
7f0003000000-7f0004000000 rw-p 00000000 00:00 0
";
        assert_eq!(mapped(maps), [7 << 32 | 3]);
    }

    #[test]
    fn memory_is_no_disk() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let device = traffic::id_of(file.as_file().metadata().unwrap().dev());
        assert!(!of(std::process::id()).contains(&device));
    }
}
