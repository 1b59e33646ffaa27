//! What the machine's disks and network interfaces have moved since it was started, for all
//! processes together.

mod multipath;
mod network;

use core::ffi::CStr;

use discnice_units::Nanos;

use crate::lines::{lines, number};
use crate::raw::Errno;
pub use network::{Interfaces, network, network_in};

/// Bytes in a sector, whatever the disk's own is. Documentation/block/stat.rst.
const SECTOR: u64 = 512;
/// The unit of a disk's busy time, in nanoseconds.
const MILLISECOND: u64 = Nanos::from_millis(1).0;
/// Longest name of a disk that we compare.
const NAME: usize = 32;

/// Names of disks that are not made of others, up to their letter or number.
const PHYSICAL: [&[u8]; 10] =
    [b"sd", b"vd", b"hd", b"xvd", b"nvme", b"mmcblk", b"nbd", b"rbd", b"dasd", b"pmem"];
/// Prefixes of disks with a `p` between their name and a partition's number; others have the number
/// alone.
const SEPARATED: [&[u8]; 7] = [b"nvme", b"mmcblk", b"nbd", b"rbd", b"pmem", LOOP, b"md"];
const LOOP: &[u8] = b"loop";
/// Bytes or packets that passed since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficCounters {
    /// Read, or received.
    pub inward: u64,
    /// Written, or sent.
    pub outward: u64,
}

impl TrafficCounters {
    const fn plus(self, other: Self) -> Self {
        Self {
            inward: self.inward.wrapping_add(other.inward),
            outward: self.outward.wrapping_add(other.outward),
        }
    }
}

/// One disk or partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk<'a> {
    /// Number of the device: major in the upper half, minor in the lower.
    pub id: u64,
    name: &'a [u8],
    /// What it moved.
    pub moved: TrafficCounters,
    /// For how long it had something to do.
    pub busy: Nanos,
    /// Requests that it has done, reads and writes.
    pub requests: u64,
    /// For how long these waited and were served, all together.
    pub waited: Nanos,
    /// Requests that it has to do now.
    pub in_flight: u64,
}

impl<'a> Disk<'a> {
    /// A line of /proc/diskstats. Documentation/admin-guide/iostats.rst
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let (major, minor) = (number(fields.next()?), number(fields.next()?));
        let name = fields.next()?;
        // Of partitions old kernels tell less.
        let mut next = |skipped| fields.nth(skipped).map(number);
        let (reads, inward, reading) = (next(0)?, next(1)?, next(0).unwrap_or(0));
        let (writes, outward, writing) = (next(0)?, next(1)?, next(0).unwrap_or(0));
        let (in_flight, busy) = (next(0).unwrap_or(0), next(0).unwrap_or(0));
        let time = |milliseconds: u64| Nanos(milliseconds.saturating_mul(MILLISECOND));
        Some(Self {
            id: major << 32 | minor,
            name,
            moved: TrafficCounters {
                inward: inward.wrapping_mul(SECTOR),
                outward: outward.wrapping_mul(SECTOR),
            },
            busy: time(busy),
            requests: reads.wrapping_add(writes),
            waited: time(reading.wrapping_add(writing)),
            in_flight,
        })
    }

    /// Its name, as `sda` or `sda1`.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Returns true for a path to a disk, which has the number of that disk.
    #[must_use]
    pub fn is_path(&self) -> bool {
        multipath::Namespace::of_path(self.name).is_some()
    }

    /// Returns true for a whole disk that is not composed of other disks.
    #[must_use]
    pub fn is_physical(&self) -> bool {
        PHYSICAL.iter().any(|prefix| self.name.starts_with(prefix)) && whole(self.name) == self.name
    }

    /// Returns true for a file that serves as a whole disk, and may lie on any file system. loop(4)
    #[must_use]
    pub fn is_loop(&self) -> bool {
        self.name.starts_with(LOOP) && whole(self.name) == self.name
    }
}

/// The name of the disk of which this one is a part, or its own.
fn whole(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = name.get(..name.len().saturating_sub(digits)).unwrap_or(name);
    if !SEPARATED.iter().any(|prefix| name.starts_with(prefix)) {
        return if PHYSICAL.iter().any(|prefix| name.starts_with(prefix)) { stem } else { name };
    }
    match stem.split_last() {
        Some((b'p', disk)) if digits > 0 && disk.last().is_some_and(u8::is_ascii_digit) => disk,
        _ => name,
    }
}

/// Calls `each` with every disk and partition, with a disk also for each of its paths if what passes these is counted
/// nowhere else. proc_diskstats(5)
///
/// # Errors
/// /proc is not there, or no descriptor is free.
pub fn disks(each: impl FnMut(Disk<'_>)) -> Result<(), Errno> {
    disks_in(c"/proc/diskstats", b"/sys/class/block/", each)
}

/// Does the same as [`disks`] with another list, and with a path of block devices that ends with a slash.
///
/// # Errors
/// As [`disks`].
pub fn disks_in(list: &CStr, blocks: &[u8], mut each: impl FnMut(Disk<'_>)) -> Result<(), Errno> {
    lines(list, |line| {
        let Some(disk) = Disk::parse(line) else { return };
        let Some(whole) = multipath::Namespace::of_path(disk.name) else { return each(disk) };
        match whole.counts(blocks) {
            Some(true) => {}
            Some(false) => each(Disk { id: whole.number(blocks).unwrap_or(disk.id), ..disk }),
            // Without sysfs it is a disk by itself.
            None => each(disk),
        }
    })
}

/// The whole disk on which a file system of this device number (`st_dev` of stat(2)) lies; `None`
/// for one that has no disk of its own (btrfs, overlayfs, network file systems).
#[must_use]
pub fn disk_of(device: u64) -> Option<u64> {
    disk_of_id(id_of(device))
}

/// Returns the whole disk like [`disk_of`], for a device number as in [`Disk::id`].
#[must_use]
pub fn disk_of_id(wanted: u64) -> Option<u64> {
    let (mut found, mut last, mut name, mut length) = (None, 0, [0; NAME], 0);
    let read = disks(|disk| {
        let disk_name = whole(disk.name);
        if disk_name == disk.name {
            last = disk.id;
            length = disk_name.len().min(NAME);
            name.iter_mut().zip(disk_name).for_each(|(to, from)| *to = *from);
        }
        if disk.id == wanted {
            // A disk stands before its partitions.
            let known = name.get(..length) == Some(disk_name);
            found = Some(if known { last } else { disk.id });
        }
    });
    read.ok().and(found)
}

/// The device number as [`Disk::id`] has it. makedev(3)
pub const fn id_of(device: u64) -> u64 {
    let major = (device >> 8 & 0xfff) | (device >> 32 & 0xffff_f000);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    major << 32 | minor
}

/// How many bytes of the page cache are to be written to disks, or being written: `Dirty` and `Writeback` of
/// proc_meminfo(5).
#[must_use]
pub fn unwritten() -> Option<u64> {
    let (mut found, mut bytes) = (0, 0u64);
    lines(c"/proc/meminfo", |line| {
        if let Some(more) = unwritten_part(line) {
            (found, bytes) = (found + 1, bytes.saturating_add(more));
        }
    })
    .ok()?;
    (found == 2).then_some(bytes)
}

/// Returns the bytes of a line of /proc/meminfo that counts unwritten pages, such as `Dirty:    12 kB`.
fn unwritten_part(line: &[u8]) -> Option<u64> {
    let value = line.strip_prefix(b"Dirty:").or_else(|| line.strip_prefix(b"Writeback:"))?;
    let kib = value.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(number(kib).saturating_mul(1024))
}

#[cfg(test)]
mod tests;
