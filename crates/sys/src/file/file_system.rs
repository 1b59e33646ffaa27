//! What file system a file lies on, and that one as a whole.

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

/// File systems in memory; ext2 to ext4, XFS, btrfs, F2FS, bcachefs, ZFS (linux/magic.h, and their
/// own headers).
const LOCAL: [u64; 9] =
    [TMPFS, RAMFS, HUGETLBFS, 0xef53, 0x5846_5342, BTRFS, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1];

/// Returns true if the kernel alone serves a file, by one of the common file systems; overlayfs
/// refers to others. This query may take long. fstatfs(2)
#[must_use]
pub fn is_local(fd: i32) -> bool {
    file_system(fd).is_some_and(|kind| LOCAL.contains(&kind))
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
