//! Carries everything but the contents from one file to another, by descriptor: a name could mean
//! another file by now.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Gid, IFlags, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::raw::Attributes;
use super::status::{Meta, stat_open};

/// Largest attribute, and largest list of names, that Linux has (linux/limits.h).
const XATTR_MAX: usize = 65536;

type Xattrs = BTreeMap<CString, Vec<u8>>;

/// All extended attributes that we may see; ACLs and file capabilities are among them.
fn xattrs(fd: BorrowedFd<'_>) -> rustix::io::Result<Xattrs> {
    let mut list = vec![0u8; XATTR_MAX];
    let length = match rustix::fs::flistxattr(fd, &mut list) {
        Err(Errno::NOTSUP) => return Ok(Xattrs::new()),
        other => other?,
    };
    let mut found = Xattrs::new();
    if length == 0 {
        return Ok(found);
    }
    let mut value = vec![0u8; XATTR_MAX];
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(name) = CString::new(name) else { continue };
        let size = rustix::fs::fgetxattr(fd, &*name, &mut value)?;
        found.insert(name, value[..size].to_vec());
    }
    Ok(found)
}

/// Makes the attributes equal. What is equal already is left alone: a security module may have
/// set it and not allow us to.
fn copy_xattrs(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let (wanted, have) = (xattrs(from)?, xattrs(to)?);
    // A default ACL of the parent may have been inherited.
    for name in have.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::fremovexattr(to, &**name)?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| have.get(*name) != Some(*value)) {
        rustix::fs::fsetxattr(to, &**name, value, XattrFlags::empty())?;
    }
    Ok(())
}

/// The flags of chattr(1) that people set; others are the file system's own business.
fn kept_flags() -> IFlags {
    /// `FS_NOCOMP_FL` of linux/fs.h, without a name in the library.
    const NOT_COMPRESSED: IFlags = IFlags::from_bits_retain(0x400);
    IFlags::NODUMP
        | IFlags::SECURE_REMOVAL
        | IFlags::UNRM
        | NOT_COMPRESSED
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

/// Makes the project, for quotas, and what XFS keeps beside the inode flags equal; as [`copy_flags`], before any contents.
///
/// # Errors
/// As ioctl(2); `EOPNOTSUPP` if something did not stick.
pub fn copy_project(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // File systems without have none to lose.
    let Ok(wanted) = Attributes::of(from) else { return Ok(()) };
    if Attributes::of(to)?.are_as(&wanted) {
        return Ok(());
    }
    wanted.give(to)?;
    if Attributes::of(to)?.are_as(&wanted) { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

/// Carries owner, attributes, mode and times over, in the order in which they do not undo each
/// other: a change of owner clears capabilities and set-id bits, an ACL changes the mode, and
/// attributes of read-only files cannot be written.
///
/// # Errors
/// As the system calls; `EPERM` for what could not be kept.
pub fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>, meta: &Meta) -> rustix::io::Result<()> {
    let now = stat_open(to)?;
    if (now.uid, now.gid) != (meta.uid, meta.gid) {
        let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
        rustix::fs::fchown(to, Some(uid), Some(gid))?;
    }
    copy_xattrs(from, to)?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(meta.mode))?;
    let spec = |(tv_sec, nanos): (i64, u32)| Timespec { tv_sec, tv_nsec: nanos.into() };
    let times = Timestamps { last_access: spec(meta.atime), last_modification: spec(meta.mtime) };
    rustix::fs::futimens(to, &times)?;
    let now = stat_open(to)?;
    let kept = (now.mode, now.uid, now.gid) == (meta.mode, meta.uid, meta.gid);
    if kept { Ok(()) } else { Err(Errno::PERM) }
}

/// Returns true if two files have the same size, owner, mode, modification time and extended
/// attributes.
///
/// # Errors
/// As the system calls.
pub fn same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let facts = stat_open(one)?.facts() == stat_open(other)?.facts();
    Ok(facts && xattrs(one)? == xattrs(other)?)
}

/// Opens for reading without moving the access time, where that is allowed, and without waiting
/// for the other end of a FIFO.
///
/// # Errors
/// As open(2).
pub fn open_quietly(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(dir, name, flags, Mode::empty());
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}
