//! What has to be kept of a file, as statx(2) tells it.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags};

use super::marker::{Facts, Identity};

/// What has to be kept of a file, and what tells that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of the inode.
    pub nlink: u32,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Device numbers of a device file, major and minor.
    pub rdev: (u32, u32),
    /// Device of the file system.
    pub dev: (u32, u32),
    /// Access time: seconds, nanoseconds.
    pub atime: (i64, u32),
    /// Modification time.
    pub mtime: (i64, u32),
    /// Change time.
    pub ctime: (i64, u32),
    /// Time of birth; zeros where the file system has none.
    pub born: (i64, u32),
    /// Immutable, append-only, encrypted, mount root….
    pub attributes: u64,
}

impl From<Statx> for Meta {
    fn from(stat: Statx) -> Self {
        Self {
            mode: u32::from(stat.stx_mode),
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            nlink: stat.stx_nlink,
            ino: stat.stx_ino,
            size: stat.stx_size,
            allocated: stat.stx_blocks * 512,
            rdev: (stat.stx_rdev_major, stat.stx_rdev_minor),
            dev: (stat.stx_dev_major, stat.stx_dev_minor),
            atime: (stat.stx_atime.tv_sec, stat.stx_atime.tv_nsec),
            mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            born: if StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME) {
                (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)
            } else {
                (0, 0)
            },
            attributes: stat.stx_attributes.bits(),
        }
    }
}

impl Meta {
    /// What kind of file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Returns true if the file has this attribute of statx(2).
    pub fn has(&self, attribute: StatxAttributes) -> bool {
        self.attributes & attribute.bits() != 0
    }

    /// The file as the kernel knows it.
    pub fn identity(&self) -> Identity {
        Identity { dev: self.dev, ino: self.ino, born: self.born }
    }

    /// What tells that it was not changed, even if it was moved since.
    pub fn facts(&self) -> Facts {
        let Self { size, uid, gid, mode, mtime, .. } = *self;
        Facts { size, uid, gid, mode, mtime }
    }

    /// Returns true if nothing that a program could have written differs, names included. Access
    /// time does not count.
    pub fn unchanged(&self, later: &Self) -> bool {
        self.identity() == later.identity()
            && self.facts() == later.facts()
            && (self.ctime, self.nlink) == (later.ctime, later.nlink)
    }
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Metadata of `name` in `dir`, links not followed; `.` is the directory itself.
pub fn stat(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Meta> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(dir, name, flags, WANTED).map(Meta::from)
}

/// Metadata of an open file.
pub fn stat_open(fd: BorrowedFd<'_>) -> rustix::io::Result<Meta> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, WANTED).map(Meta::from)
}
