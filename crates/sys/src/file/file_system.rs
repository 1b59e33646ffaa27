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

/// File systems that the kernel alone keeps, on a disk of this machine or in its memory: their names in `/proc/filesystems`,
/// and their numbers (linux/magic.h, and their own headers). Any other, also one that is not known here, may wait for a
/// server or a daemon.
const LOCAL: [(&str, u64); 26] = [
    ("bcachefs", 0xca45_1a4e),
    ("btrfs", BTRFS),
    ("devtmpfs", TMPFS),
    ("erofs", EROFS),
    ("exfat", 0x2011_bab0),
    ("ext2", EXT),
    ("ext3", EXT),
    ("ext4", EXT),
    ("f2fs", 0xf2f5_2010),
    ("hfs", 0x4244),
    ("hfsplus", 0x482b),
    ("hugetlbfs", HUGETLBFS),
    ("iso9660", 0x9660),
    ("jfs", 0x3153_464a),
    ("msdos", FAT),
    ("nilfs2", 0x3434),
    ("ntfs3", 0x7366_746e),
    ("ramfs", RAMFS),
    ("reiserfs", 0x5265_4973),
    ("squashfs", 0x7371_7368),
    ("tmpfs", TMPFS),
    ("ubifs", 0x2405_1905),
    ("udf", 0x1501_3346),
    ("vfat", FAT),
    ("xfs", 0x5846_5342),
    ("zfs", 0x2fc1_2fc1),
];
/// `EXT4_SUPER_MAGIC`, which is that of ext2 and ext3, too; `MSDOS_SUPER_MAGIC`.
const EXT: u64 = 0xef53;
const FAT: u64 = 0x4d44;
/// `EROFS_SUPER_MAGIC_V1`. It may be kept by a daemon (cachefiles) or in a file, and then has no device.
const EROFS: u64 = 0xe0f5_e1e2;

/// Returns true if the kernel alone serves a file, by one of the common file systems; overlayfs
/// refers to others. This query may take long. fstatfs(2)
#[must_use]
pub fn is_local(fd: i32) -> bool {
    let has_device = || status_as_known(fd).is_ok_and(|known| libc::major(known.device) != 0);
    file_system(fd).is_some_and(|number| is_kept_by_kernel(number, has_device))
}

/// Returns true if the kernel alone serves the files of a mount, by the type that mountinfo tells, and by whether its device
/// has a driver (a major number). proc_pid_mountinfo(5)
#[must_use]
pub fn is_local_mount(name: &str, has_device: bool) -> bool {
    let known = LOCAL.iter().find(|(one, _)| *one == name);
    known.is_some_and(|(_, number)| is_kept_by_kernel(*number, || has_device))
}

fn is_kept_by_kernel(number: u64, has_device: impl FnOnce() -> bool) -> bool {
    LOCAL.iter().any(|(_, one)| *one == number) && (number != EROFS || has_device())
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
        let on_disks = [
            0xef53,
            0x7371_7368,
            0x4d44,
            0x2011_bab0,
            0x7366_746e,
            0x9660,
            0x1501_3346,
            0x3153_464a,
            0x3434,
            0x5265_4973,
            0x4244,
            0x482b,
            0x2405_1905,
            0xf2f5_2010,
            0xca45_1a4e,
        ];
        for kind in on_disks {
            assert!(is_kept_by_kernel(kind, || false), "{kind:x}");
        }
        let served = [FUSE, OVERLAYFS, 0x6969, 0xff53_4d42, 0x0102_1997, 0x6165_676c];
        assert!(!served.iter().any(|kind| is_kept_by_kernel(*kind, || true)));
        assert!(is_kept_by_kernel(EROFS, || true) && !is_kept_by_kernel(EROFS, || false));
        let of = |path| is_local(File::open(path).unwrap().as_raw_fd());
        assert!(of("/dev/shm") && !of("/proc"));
        for name in ["ext3", "jfs", "vfat", "devtmpfs"] {
            assert!(is_local_mount(name, false), "{name}");
        }
        assert!(is_local_mount("erofs", true) && !is_local_mount("erofs", false));
        assert!(
            !["fuse.sshfs", "fuseblk", "nfs4", "overlay", ""]
                .iter()
                .any(|name| is_local_mount(name, true))
        );
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
