//! What file system a file lies on, and that one as a whole.

use super::status::{Status, status_as_known};
use crate::raw::{Errno, call};

/// `OVERLAYFS_SUPER_MAGIC`, `FUSE_SUPER_MAGIC`. statfs(2)
const OVERLAYFS: u64 = 0x794c_7630;
pub(super) const FUSE: u64 = 0x6573_5546;

/// Returns true if a file lies on an overlayfs. fstatfs(2)
#[must_use]
pub fn is_on_overlay(fd: i32) -> bool {
    file_system(fd) == Some(OVERLAYFS)
}

/// `TMPFS_MAGIC`, `RAMFS_MAGIC`, `HUGETLBFS_MAGIC`. statfs(2)
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const HUGETLBFS: u64 = 0x9584_58f6;

/// Returns true if a file lies on a file system in memory alone. fstatfs(2)
#[must_use]
pub fn is_in_memory(fd: i32) -> bool {
    matches!(file_system(fd), Some(TMPFS | RAMFS | HUGETLBFS))
}

/// File systems in memory; ext2 to ext4, XFS, btrfs, F2FS, bcachefs, ZFS, SquashFS, FAT, exFAT, NTFS (ntfs3), ISO 9660, UDF
/// (linux/magic.h, and their own headers).
const LOCAL: [u64; 15] = [
    TMPFS,
    RAMFS,
    HUGETLBFS,
    0xef53,
    0x5846_5342,
    BTRFS,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x7371_7368,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
    0x9660,
    0x1501_3346,
];
/// `EROFS_SUPER_MAGIC_V1`. It may be kept by a daemon (cachefiles) or in a file, and then has no device.
const EROFS: u64 = 0xe0f5_e1e2;

/// Returns true if the kernel alone serves a file, by one of the common file systems; overlayfs
/// refers to others. This query may take long. fstatfs(2)
#[must_use]
pub fn is_local(fd: i32) -> bool {
    let has_device = || status_as_known(fd).is_ok_and(|known| libc::major(known.device) != 0);
    file_system(fd).is_some_and(|kind| is_kept_by_kernel(kind, has_device))
}

fn is_kept_by_kernel(kind: u64, has_device: impl FnOnce() -> bool) -> bool {
    LOCAL.contains(&kind) || kind == EROFS && has_device()
}

/// File systems without a disk, on which a write is a command to the kernel: proc, sysfs, securityfs, selinuxfs, smackfs,
/// AppArmor's own, debugfs, tracefs, configfs, binfmt_misc, resctrl, cgroups of both versions, efivarfs, pstore
/// (linux/magic.h, and their own sources).
const COMMANDS: [u64; 15] = [
    0x9fa0,
    0x6265_6572,
    0x7363_6673,
    0xf97c_ff8c,
    0x4341_5d53,
    0x5a3c_69f0,
    0x6462_6720,
    0x7472_6163,
    0x6265_6570,
    0x4249_4e4d,
    0x0765_5821,
    0x0027_e0eb,
    0x6367_7270,
    0xde5e_81e4,
    0x6165_676c,
];

/// Returns true if a write to a file is a command to the kernel, which must come in one call. Of files that a daemon or server
/// keeps, it is asked only about empty ones. statx(2), fstatfs(2)
#[must_use]
pub fn takes_commands(fd: i32) -> bool {
    // Such files are empty, and their device numbers have no driver.
    let may = |known: Status| known.regular && known.size == 0 && libc::major(known.device) == 0;
    status_as_known(fd).is_ok_and(may) && lies_in_kernel(fd)
}

fn lies_in_kernel(fd: i32) -> bool {
    file_system(fd).is_some_and(|kind| COMMANDS.contains(&kind))
}

/// `BTRFS_SUPER_MAGIC`. statfs(2)
const BTRFS: u64 = 0x9123_683e;
/// `BTRFS_IOC_SYNC`: `_IO(0x94, 8)` (linux/btrfs.h).
const BTRFS_SYNC: usize = 0x9408;

/// Writes back a file's whole file system, and waits for it. syncfs(2); on btrfs its own request.
/// There syncfs(2) writes trees that the next commit changes and writes once more, which the
/// request avoids.
///
/// # Errors
/// `EBADF`; `EIO` and others of the disk.
pub fn commit(fd: i32) -> Result<(), Errno> {
    if file_system(fd) == Some(BTRFS) {
        // SAFETY: a request without an argument.
        return unsafe { call!(libc::SYS_ioctl, fd, BTRFS_SYNC, 0) }.map(drop);
    }
    // SAFETY: a number only.
    unsafe { call!(libc::SYS_syncfs, fd) }.map(drop)
}

/// Type of the file system that a file lies on.
pub(super) fn file_system(fd: i32) -> Option<u64> {
    // struct statfs on 64-bit machines: fifteen words, the type in the first.
    let mut answer = [0u64; 15];
    // SAFETY: the kernel writes one struct statfs of 120 bytes.
    let asked = unsafe { call!(libc::SYS_fstatfs, fd, answer.as_mut_ptr()) };
    let [kind, ..] = answer;
    asked.is_ok().then_some(kind)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::fs::{File, write};
    use std::os::fd::AsRawFd;

    use super::*;

    /// Magic numbers of the kernel's headers.
    #[test]
    fn file_systems_on_disks_are_local() {
        let on_disks = [0xef53, 0x7371_7368, 0x4d44, 0x2011_bab0, 0x7366_746e, 0x9660, 0x1501_3346];
        assert!(on_disks.iter().all(|kind| is_kept_by_kernel(*kind, || false)));
        let served = [FUSE, OVERLAYFS, 0x6969, 0xff53_4d42, 0x0102_1997, 0x6165_676c];
        assert!(!served.iter().any(|kind| is_kept_by_kernel(*kind, || true)));
        assert!(is_kept_by_kernel(EROFS, || true) && !is_kept_by_kernel(EROFS, || false));
        let of = |path| is_local(File::open(path).unwrap().as_raw_fd());
        assert!(of("/dev/shm") && !of("/proc"));
    }

    #[test]
    fn commands_to_the_kernel_are_told_from_files() {
        for path in ["/proc/self/comm", "/proc/sys/kernel/hostname", "/sys/kernel/mm"] {
            assert!(lies_in_kernel(File::open(path).unwrap().as_raw_fd()), "{path}");
        }
        for path in ["/tmp", "/dev/shm"] {
            let file = tempfile::NamedTempFile::new_in(path).unwrap();
            for contents in ["", "some"] {
                write(file.path(), contents).unwrap();
                let fd = file.as_file().as_raw_fd();
                assert!(!lies_in_kernel(fd) && !takes_commands(fd), "{path}: {contents}");
            }
        }
        for path in ["/", "/proc", "/dev/null"] {
            assert!(!takes_commands(File::open(path).unwrap().as_raw_fd()), "{path}");
        }
        assert!(!takes_commands(-1));
    }
}
