//! What a file is: its kind, size, owner and age.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use discnice_units::Nanos;

use crate::raw::{Errno, call};

/// What kind of object a descriptor is, as far as disk and network traffic go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file, a directory or a block device: its I/O can reach a disk.
    Disk,
    /// A socket: its I/O can reach a network.
    Socket,
    /// A pipe, terminal or other device: it reaches neither.
    Other,
}

/// The part of stat(2) that matters here.
#[derive(Debug, Clone, Copy)]
pub struct Status {
    /// What it can reach.
    pub kind: FileKind,
    /// Set for a regular file.
    pub regular: bool,
    /// Permission bits, set-user-id and its like included.
    pub mode: u32,
    /// Set if any user may execute it.
    pub executable: bool,
    /// Size in bytes.
    pub size: u64,
    /// Device number of the file system, as stat(2) encodes it.
    pub device: u64,
    /// Number of the file in its file system.
    pub inode: u64,
    /// The owner's user id.
    pub owner: u32,
    /// How many names it has.
    pub links: u64,
    /// Bytes that are allocated for it.
    pub allocated: u64,
}

/// What a descriptor is. statx(2), or fstat(2) where the kernel has none.
///
/// Not asked for its times, the kernel forgets nothing about them: fstat(2) makes it give the next
/// write a time of its own, which the program can see, and writes the inode again for that
/// (`STATX_CTIME` in the kernel's fs/stat.c).
///
/// # Errors
/// `EBADF` when the descriptor is closed.
pub fn status(fd: i32) -> Result<Status, Errno> {
    match ask(fd, c"".as_ptr(), libc::AT_EMPTY_PATH) {
        Err(error) if is_refusal(error) => {}
        answer => return answer,
    }
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills one struct stat of the native layout, which libc declares.
    unsafe { call!(libc::SYS_fstat, fd, stat.as_mut_ptr())? };
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    Ok(Status::from(unsafe { stat.assume_init() }))
}

/// Returns a descriptor's status as the kernel last knew it, without asking the daemon or server of
/// a FUSE or network file system. `AT_STATX_DONT_SYNC` of statx(2)
///
/// # Errors
/// `EBADF` when the descriptor is closed, `ENOSYS` and the like without statx(2).
pub fn status_as_known(fd: i32) -> Result<Status, Errno> {
    ask(fd, c"".as_ptr(), libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC)
}

/// The status of the file that a name stands for, symbolic links not followed. statx(2), or
/// fstatat(2).
///
/// # Errors
/// `ENOENT` and others; `EFAULT` if the name cannot be read.
pub fn status_at(directory: i32, name: *const c_char) -> Result<Status, Errno> {
    status_named(directory, name, libc::AT_SYMLINK_NOFOLLOW)
}

/// Returns the status of a named file like [`status_at`], but refreshed by the daemon or server of
/// the file system. For a file with two names on FUSE the kernel keeps two statuses for a while,
/// and making the second name changes only one: `AT_STATX_FORCE_SYNC`.
///
/// # Errors
/// As [`status_at`].
pub fn status_now(directory: i32, name: *const c_char) -> Result<Status, Errno> {
    status_named(directory, name, libc::AT_SYMLINK_NOFOLLOW | libc::AT_STATX_FORCE_SYNC)
}

/// As [`status_at`], symbolic links followed.
///
/// # Errors
/// As [`status_at`].
pub fn status_behind(path: &CStr) -> Result<Status, Errno> {
    status_named(libc::AT_FDCWD, path.as_ptr(), 0)
}

/// Bytes that are enough for the names of most directories.
const PARENT: usize = 512;

/// The status of the directory that a name is in, symbolic links followed: for `a/b` that of `a`, for `b` that of
/// `directory` itself, which also stands for one with a name of 510 bytes or more.
///
/// # Errors
/// As [`status_at`].
///
/// # Safety
/// `name` is a C string.
pub unsafe fn status_of_parent(directory: i32, name: *const c_char) -> Result<Status, Errno> {
    // SAFETY: the caller vouches for it.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let last = name.iter().rposition(|&byte| byte != b'/').unwrap_or(0);
    let before = name.iter().take(last).rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let before = if before + 2 > PARENT { 0 } else { before };
    let mut path = [0; PARENT];
    let parts = name.iter().take(before).chain(b".");
    path.iter_mut().zip(parts).for_each(|(to, &byte)| *to = byte);
    status_at(directory, path.as_ptr().cast())
}

fn status_named(directory: i32, name: *const c_char, flags: i32) -> Result<Status, Errno> {
    match ask(directory, name, flags) {
        Err(error) if is_refusal(error) => {}
        answer => return answer,
    }
    let flags = flags & !libc::AT_STATX_FORCE_SYNC;
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills one struct stat, and answers EFAULT if it cannot read the name.
    unsafe { call!(libc::SYS_newfstatat, directory, name, stat.as_mut_ptr(), flags)? };
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    Ok(Status::from(unsafe { stat.assume_init() }))
}

/// A clock tick at 100 Hz, in nanoseconds.
const TICK: i64 = 10_000_000;

/// For how long a file has existed, to a clock tick. statx(2), clock_gettime(2)
///
/// # Errors
/// As [`status`]; `ENODATA` where the file system does not know, or the clock was set back since.
pub fn age(fd: i32) -> Result<Nanos, Errno> {
    let (name, flags, mask) = (c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_BTIME);
    let mut answer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the kernel fills one struct statx.
    unsafe { call!(libc::SYS_statx, fd, name, flags, mask, answer.as_mut_ptr())? };
    // SAFETY: any bits are a struct statx, and all were set.
    let answer = unsafe { answer.assume_init() };
    if answer.stx_mask & libc::STATX_BTIME == 0 {
        return Err(Errno(libc::ENODATA));
    }
    let mut now = [0i64; 2];
    // SAFETY: the kernel writes one struct timespec, which is two numbers.
    unsafe { call!(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, now.as_mut_ptr())? };
    let whole =
        |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    let born = whole(answer.stx_btime.tv_sec, answer.stx_btime.tv_nsec.into());
    age_at(whole(now[0], now[1]), born).ok_or(Errno(libc::ENODATA))
}

/// What is born at `born` is so old, both in nanoseconds since 1970. By a clock tick it may be in the future, by
/// more only if the clock was set back.
fn age_at(now: i64, born: i64) -> Option<Nanos> {
    let age = now.saturating_sub(born);
    u64::try_from(age).map_or_else(|_| (age > -TICK).then_some(Nanos(0)), |age| Some(Nanos(age)))
}

/// Asks by fstat(2) alone from now on: a filter of the program's forbids statx(2).
pub fn forgo_statx() {
    FORGONE.store(true, Ordering::Relaxed);
}

/// Returns true after [`forgo_statx`]: then no other call that a filter may not allow is made
/// either.
#[must_use]
pub fn is_statx_forgone() -> bool {
    FORGONE.load(Ordering::Relaxed)
}

static FORGONE: AtomicBool = AtomicBool::new(false);

/// Returns true if a call itself was refused: by a kernel before 4.11, or by a filter.
fn is_refusal(error: Errno) -> bool {
    matches!(error.0, libc::ENOSYS | libc::EPERM)
}

fn ask(directory: i32, name: *const c_char, flags: i32) -> Result<Status, Errno> {
    if FORGONE.load(Ordering::Relaxed) {
        return Err(Errno(libc::ENOSYS));
    }
    let times = libc::STATX_ATIME | libc::STATX_MTIME | libc::STATX_CTIME;
    let mask = libc::STATX_BASIC_STATS & !times;
    let mut answer = MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the kernel fills one struct statx, and answers EFAULT if it cannot read the name.
    unsafe { call!(libc::SYS_statx, directory, name, flags, mask, answer.as_mut_ptr())? };
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    Ok(Status::from(unsafe { answer.assume_init() }))
}

impl From<libc::statx> for Status {
    fn from(answer: libc::statx) -> Self {
        Self {
            size: answer.stx_size,
            device: libc::makedev(answer.stx_dev_major, answer.stx_dev_minor),
            inode: answer.stx_ino,
            owner: answer.stx_uid,
            links: answer.stx_nlink.into(),
            allocated: answer.stx_blocks.saturating_mul(512),
            ..Self::of_mode(answer.stx_mode.into())
        }
    }
}

impl From<libc::stat> for Status {
    #[allow(clippy::useless_conversion, reason = "a number of links has 32 bits on aarch64")]
    fn from(stat: libc::stat) -> Self {
        Self {
            size: stat.st_size.max(0) as u64,
            device: stat.st_dev,
            inode: stat.st_ino,
            owner: stat.st_uid,
            links: stat.st_nlink.into(),
            allocated: (stat.st_blocks.max(0) as u64).saturating_mul(512),
            ..Self::of_mode(stat.st_mode)
        }
    }
}

impl Status {
    /// What a file's mode alone says.
    fn of_mode(mode: libc::mode_t) -> Self {
        let kind = match mode & libc::S_IFMT {
            libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => FileKind::Disk,
            libc::S_IFSOCK => FileKind::Socket,
            _ => FileKind::Other,
        };
        Self {
            kind,
            regular: mode & libc::S_IFMT == libc::S_IFREG,
            mode: mode & 0o7777,
            executable: mode & 0o111 != 0,
            size: 0,
            device: 0,
            inode: 0,
            owner: 0,
            links: 0,
            allocated: 0,
        }
    }
}

#[cfg(test)]
mod tests;
