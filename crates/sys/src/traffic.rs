//! What the machine's disks and network interfaces have moved since it was started, whoever
//! caused it, and how long tasks have stalled on I/O.

use discnice_units::Nanos;

use crate::lines::lines;
use crate::raw::Errno;

/// Bytes in a sector, whatever the disk's own is. Documentation/block/stat.rst.
const SECTOR: u64 = 512;
/// The unit of a disk's busy time, in nanoseconds.
const MILLISECOND: u64 = Nanos::from_millis(1).0;
/// Longest name of a disk that we compare.
const NAME: usize = 32;

/// Names of disks that are not made of others, up to their letter or number.
const PHYSICAL: [&[u8]; 6] = [b"sd", b"vd", b"hd", b"xvd", b"nvme", b"mmcblk"];
/// Of these a partition's name ends in `p` and a number; of the others in a number.
const SEPARATED: [&[u8]; 5] = [b"nvme", b"mmcblk", b"nbd", b"loop", b"md"];
/// Interfaces whose traffic passes another one as well, or none.
const VIRTUAL: [&[u8]; 7] = [b"lo", b"veth", b"docker", b"br-", b"virbr", b"tun", b"tap"];

/// Bytes that passed since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Read, or received.
    pub inward: u64,
    /// Written, or sent.
    pub outward: u64,
}

/// One disk or partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk<'a> {
    /// Number of the device: major in the upper half, minor in the lower.
    pub id: u64,
    name: &'a [u8],
    /// What it moved.
    pub moved: Moved,
    /// For how long it had something to do.
    pub busy: Nanos,
}

impl<'a> Disk<'a> {
    /// A line of /proc/diskstats. Documentation/admin-guide/iostats.rst
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let (major, minor) = (number(fields.next()?), number(fields.next()?));
        let name = fields.next()?;
        let inward = number(fields.nth(2)?).wrapping_mul(SECTOR);
        let outward = number(fields.nth(3)?).wrapping_mul(SECTOR);
        // Which old kernels do not tell.
        let busy = fields.nth(2).map_or(0, number).saturating_mul(MILLISECOND);
        let moved = Moved { inward, outward };
        Some(Self { id: major << 32 | minor, name, moved, busy: Nanos(busy) })
    }

    /// Whether it is a whole disk that is not made of others.
    #[must_use]
    pub fn is_physical(&self) -> bool {
        PHYSICAL.iter().any(|prefix| self.name.starts_with(prefix)) && whole(self.name) == self.name
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

pub(crate) fn number(digits: &[u8]) -> u64 {
    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0u64, |number, digit| {
        number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

/// Calls `each` with every disk and partition. proc_diskstats(5)
///
/// # Errors
/// /proc is not there, or no descriptor is free.
pub fn disks(mut each: impl FnMut(Disk<'_>)) -> Result<(), Errno> {
    lines(c"/proc/diskstats", |line| {
        if let Some(disk) = Disk::parse(line) {
            each(disk);
        }
    })
}

/// The whole disk on which a file system of this device number (`st_dev` of stat(2)) lies; `None`
/// for one that has no disk of its own (btrfs, overlayfs, network file systems).
#[must_use]
pub fn disk_of(device: u64) -> Option<u64> {
    let wanted = id_of(device);
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

/// What the network interfaces of this process's namespace moved, the loopback excepted.
/// proc_pid_net(5)
///
/// # Errors
/// As [`disks`].
pub fn network() -> Result<Moved, Errno> {
    let mut all = Moved::default();
    lines(c"/proc/net/dev", |line| {
        if let Some(moved) = interface(line) {
            all.inward = all.inward.wrapping_add(moved.inward);
            all.outward = all.outward.wrapping_add(moved.outward);
        }
    })?;
    Ok(all)
}

fn interface(line: &[u8]) -> Option<Moved> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, numbers) = line.split_at_checked(colon)?;
    let name = name.trim_ascii_start();
    if VIRTUAL.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let mut fields =
        numbers.get(1..)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    Some(Moved { inward: number(fields.next()?), outward: number(fields.nth(7)?) })
}

/// For how long at least one task has stalled on I/O since the machine started.
/// Documentation/accounting/psi.rst
///
/// # Errors
/// The kernel keeps no such account.
pub fn stalled_on_io() -> Result<Nanos, Errno> {
    let mut total = None;
    lines(c"/proc/pressure/io", |line| {
        let label = b"total=";
        let at = line.windows(label.len()).position(|window| window == label);
        if let (true, Some(at)) = (line.starts_with(b"some"), at) {
            total = line.get(at + label.len()..).map(number);
        }
    })?;
    total.map(|micros| Nanos(micros.saturating_mul(1000))).ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_belong_to_their_disk() {
        for (name, disk) in [
            ("sda", "sda"),
            ("sda3", "sda"),
            ("xvdb12", "xvdb"),
            ("nvme0n1", "nvme0n1"),
            ("nvme0n1p2", "nvme0n1"),
            ("mmcblk0p1", "mmcblk0"),
            ("loop7", "loop7"),
            ("dm-3", "dm-3"),
            ("sr0", "sr0"),
        ] {
            assert_eq!(whole(name.as_bytes()), disk.as_bytes(), "{name}");
        }
    }

    #[test]
    fn a_line_of_diskstats() {
        let line = b" 254       1 vda1 7 1 4096 5 9 2 1024 3 0 1 2 0 0 0 0 4 5";
        let disk = Disk::parse(line).expect("a disk");
        assert_eq!((disk.id, disk.is_physical()), (254 << 32 | 1, false));
        assert_eq!(disk.busy, Nanos::from_millis(1));
        assert_eq!(disk.moved, Moved { inward: 4096 * 512, outward: 1024 * 512 });
        assert!(Disk::parse(b"junk").is_none() && Disk::parse(b"").is_none());
    }

    #[test]
    fn a_line_of_interfaces() {
        let line = b"  eth0: 1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0";
        assert_eq!(interface(line), Some(Moved { inward: 1000, outward: 2000 }));
        assert_eq!(interface(b"    lo: 1000 1 0 0 0 0 0 0 2000 2 0"), None);
        assert_eq!(interface(b" face |bytes packets"), None);
    }

    #[test]
    fn this_machine_answers() {
        let mut count = 0;
        disks(|_| count += 1).expect("/proc/diskstats");
        network().expect("/proc/net/dev");
        assert!(id_of(0x801) == 8 << 32 | 1 && count < 10_000);
    }
}
