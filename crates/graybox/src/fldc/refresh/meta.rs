//! Carries everything but the contents from one file to another.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, IFlags, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::tree::Meta;

/// A file by its directory and name.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// Open directory.
    pub dir: BorrowedFd<'a>,
    /// Name in it; `.` is the directory itself.
    pub name: &'a CStr,
}

impl Location<'_> {
    /// A path that means this file even if its own path is too long for the kernel. The calls
    /// for extended attributes of links know paths only.
    fn path(&self) -> CString {
        let mut path = format!("/proc/self/fd/{}/", self.dir.as_raw_fd()).into_bytes();
        path.extend_from_slice(self.name.to_bytes());
        // A name comes from the kernel and has no zero inside.
        CString::new(path).unwrap_or_default()
    }
}

/// Largest attribute, and largest list of names, that Linux has (linux/limits.h).
const XATTR_MAX: usize = 65536;

type Xattrs = BTreeMap<CString, Vec<u8>>;

/// All extended attributes that we may see; ACLs and file capabilities are among them.
fn xattrs(location: Location<'_>) -> rustix::io::Result<Xattrs> {
    let path = location.path();
    let mut list = vec![0u8; XATTR_MAX];
    let length = match rustix::fs::llistxattr(&*path, &mut list) {
        Err(Errno::NOTSUP) => return Ok(Xattrs::new()),
        other => other?,
    };
    let mut found = Xattrs::new();
    let mut value = vec![0u8; XATTR_MAX];
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(name) = CString::new(name) else { continue };
        let size = rustix::fs::lgetxattr(&*path, &*name, &mut value)?;
        found.insert(name, value[..size].to_vec());
    }
    Ok(found)
}

/// Makes the attributes equal. What is equal already is left alone: a security module may have
/// set it and not allow us to.
fn copy_xattrs(from: Location<'_>, to: Location<'_>) -> rustix::io::Result<()> {
    let (wanted, have) = (xattrs(from)?, xattrs(to)?);
    let path = to.path();
    // A default ACL of the parent may have been inherited.
    for name in have.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::lremovexattr(&*path, &**name)?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| have.get(*name) != Some(*value)) {
        rustix::fs::lsetxattr(&*path, &**name, value, XattrFlags::empty())?;
    }
    Ok(())
}

/// The flags of chattr(1) that people set; others are the file system's own business.
fn kept_flags() -> IFlags {
    IFlags::NODUMP
        | IFlags::NOATIME
        | IFlags::SYNC
        | IFlags::DIRSYNC
        | IFlags::NOCOW
        | IFlags::COMPRESSED
        | IFlags::JOURNALING
        | IFlags::TOPDIR
        | IFlags::NOTAIL
        | IFlags::PROJECT_INHERIT
}

/// Makes the inode flags equal; must come before any contents, as no-copy-on-write can only be
/// set on an empty file.
///
/// # Errors
/// As ioctl(2); `EOPNOTSUPP` if a flag did not stick.
pub fn copy_flags(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // File systems without flags have none to lose.
    let Ok(wanted) = rustix::fs::ioctl_getflags(from) else { return Ok(()) };
    let have = rustix::fs::ioctl_getflags(to)?;
    let kept = kept_flags();
    if wanted & kept == have & kept {
        return Ok(());
    }
    rustix::fs::ioctl_setflags(to, (have - kept) | (wanted & kept))?;
    let now = rustix::fs::ioctl_getflags(to)?;
    if now & kept == wanted & kept { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

/// Carries owner, attributes, mode and times over, in the order in which they do not undo each
/// other: a change of owner clears capabilities and set-id bits, an ACL changes the mode, and
/// attributes of read-only files cannot be written.
///
/// # Errors
/// As the system calls; `EPERM` for what could not be kept.
pub fn copy(from: Location<'_>, to: Location<'_>, meta: &Meta) -> rustix::io::Result<()> {
    let now = super::tree::stat(to.dir, to.name)?;
    if (now.uid, now.gid) != (meta.uid, meta.gid) {
        let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
        rustix::fs::chownat(to.dir, to.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    copy_xattrs(from, to)?;
    if meta.kind() != FileType::Symlink {
        rustix::fs::chmodat(to.dir, to.name, Mode::from_raw_mode(meta.mode), AtFlags::empty())?;
    }
    copy_times(to, meta)?;
    let now = super::tree::stat(to.dir, to.name)?;
    let kept = (now.mode, now.uid, now.gid) == (meta.mode, meta.uid, meta.gid);
    if kept { Ok(()) } else { Err(Errno::PERM) }
}

/// Sets access and modification time.
fn copy_times(to: Location<'_>, meta: &Meta) -> rustix::io::Result<()> {
    let spec = |(tv_sec, nanos): (i64, u32)| Timespec { tv_sec, tv_nsec: nanos.into() };
    let times = Timestamps { last_access: spec(meta.atime), last_modification: spec(meta.mtime) };
    rustix::fs::utimensat(to.dir, to.name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Whether the copy has the same metadata and the same extended attributes.
///
/// # Errors
/// As the system calls.
pub fn same(from: Location<'_>, to: Location<'_>, meta: &Meta) -> rustix::io::Result<bool> {
    let now = super::tree::stat(to.dir, to.name)?;
    let directory = meta.kind() == FileType::Directory;
    let plain = (now.mode, now.uid, now.gid, now.rdev, now.mtime)
        == (meta.mode, meta.uid, meta.gid, meta.rdev, meta.mtime);
    // The size of a directory is a matter of its history.
    let size = directory || now.size == meta.size;
    Ok(plain && size && xattrs(from)? == xattrs(to)?)
}

/// Opens for reading without moving the access time, where that is allowed.
///
/// # Errors
/// As open(2).
pub fn open_quietly(location: Location<'_>) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open =
        |flags| rustix::fs::openat(location.dir.as_fd(), location.name, flags, Mode::empty());
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}
