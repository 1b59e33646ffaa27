//! What the regulator asks and tells the kernel about one descriptor.
//!
//! A descriptor may be closed or become another file at any moment: it is the program's, not
//! ours. Every call here is harmless on whatever it has become.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use discnice_units::Nanos;

use crate::gate;
use crate::raw::{Errno, Syscall, call, pad};

/// What kind of object a descriptor is, as far as disk and network traffic go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    pub kind: Kind,
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

/// `OVERLAYFS_SUPER_MAGIC`, `FUSE_SUPER_MAGIC`. statfs(2)
const OVERLAYFS: u64 = 0x794c_7630;
const FUSE: u64 = 0x6573_5546;

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
fn file_system(fd: i32) -> Option<u64> {
    // struct statfs on 64-bit machines: fifteen words, the type in the first.
    let mut answer = [0u64; 15];
    // SAFETY: the kernel writes one struct statfs of 120 bytes.
    let asked = unsafe { call!(libc::SYS_fstatfs, fd, answer.as_mut_ptr()) };
    let [kind, ..] = answer;
    asked.is_ok().then_some(kind)
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
    fn from(stat: libc::stat) -> Self {
        Self {
            size: stat.st_size.max(0) as u64,
            device: stat.st_dev,
            inode: stat.st_ino,
            owner: stat.st_uid,
            links: stat.st_nlink,
            allocated: (stat.st_blocks.max(0) as u64).saturating_mul(512),
            ..Self::of_mode(stat.st_mode)
        }
    }
}

impl Status {
    /// What a file's mode alone says.
    fn of_mode(mode: libc::mode_t) -> Self {
        let kind = match mode & libc::S_IFMT {
            libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => Kind::Disk,
            libc::S_IFSOCK => Kind::Socket,
            _ => Kind::Other,
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

/// The descriptor's offset. lseek(2) with `SEEK_CUR`.
///
/// # Errors
/// `ESPIPE` where there is none.
pub fn position(fd: i32) -> Result<u64, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR) }.map(|at| at as u64)
}

/// The open flags (`O_APPEND`, `O_DIRECT`…). fcntl(2) with `F_GETFL`.
///
/// # Errors
/// `EBADF` when the descriptor is closed.
pub fn flags(fd: i32) -> Result<i32, Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFL) }.map(|flags| flags as i32)
}

/// Starts reading a range into the page cache without waiting for it. readahead(2).
///
/// The kernel cuts it at one read-ahead window of the device, so callers ask in small pieces.
///
/// # Errors
/// `EINVAL` where the object has no page cache.
pub fn read_ahead(fd: i32, offset: u64, length: u64) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe {
        gate::pass(Syscall(
            libc::SYS_readahead,
            pad([fd as usize, offset as usize, length as usize]),
        ))
    }
    .map(drop)
}

/// Waits until the page at `offset` has been read, if it is being read or has not been yet. pread(2)
///
/// # Errors
/// `EBADF` without the right to read; `EINTR`; `EIO`.
pub fn await_read(fd: i32, offset: u64) -> Result<(), Errno> {
    let mut byte = [0u8; 1];
    let buffer = byte.as_mut_ptr();
    // SAFETY: the buffer has the length that is said, and outlives the call.
    unsafe { call!(libc::SYS_pread64, fd, buffer, byte.len(), offset) }.map(drop)
}

/// Advice on the whole file. posix_fadvise(2) with `POSIX_FADV_*`.
///
/// # Errors
/// `ESPIPE` on pipes.
pub fn advise(fd: i32, advice: i32) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fadvise64, fd, 0, 0, advice) }.map(drop)
}

/// Advice on a range. posix_fadvise(2) with `POSIX_FADV_*`.
///
/// # Errors
/// `ESPIPE` on pipes.
pub fn advise_range(fd: i32, offset: u64, length: u64, advice: i32) -> Result<(), Errno> {
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_fadvise64, fd, offset, length, advice) }.map(drop)
}

/// Starts writing dirty pages of a range without waiting: to the file's end if `length` is 0. sync_file_range(2) with
/// `SYNC_FILE_RANGE_WRITE`; on overlayfs, where that looks at an inode that has no pages, posix_fadvise(2) with
/// `POSIX_FADV_DONTNEED`, which reaches the file below and starts the same there (mm/fadvise.c). What of the range
/// is clean then is dropped from the cache, so there a range without an end is left alone.
///
/// # Errors
/// `ESPIPE` and others where it makes no sense; FUSE succeeds and does nothing.
pub fn start_write_back(fd: i32, offset: u64, length: u64) -> Result<(), Errno> {
    if is_on_overlay(fd) {
        if length == 0 {
            return Ok(());
        }
        return advise_range(fd, offset, length, libc::POSIX_FADV_DONTNEED);
    }
    // SAFETY: numbers only.
    unsafe { call!(libc::SYS_sync_file_range, fd, offset, length, libc::SYNC_FILE_RANGE_WRITE) }
        .map(drop)
}

/// Writes a file's dirty pages and waits for them, where [`start_write_back`] does nothing: on
/// FUSE. fdatasync(2)
///
/// # Errors
/// Those of the disk; the kernel reports each only once, so later calls do not see them.
pub fn write_through(fd: i32) -> Result<(), Errno> {
    if file_system(fd) != Some(FUSE) {
        return Ok(());
    }
    // SAFETY: a number only.
    unsafe { call!(libc::SYS_fdatasync, fd) }.map(drop)
}

/// Reads a file of /proc, which comes in pieces of a page, into `buffer`, as far as there is room;
/// returns the length.
///
/// # Errors
/// That of open(2) or read(2).
pub fn read_all(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    let mut length = 0;
    let ended = loop {
        let room = &mut buffer[length..];
        // SAFETY: the kernel writes at most the room's length into it.
        match unsafe { call!(libc::SYS_read, fd, room.as_mut_ptr(), room.len()) } {
            Ok(0) => break Ok(length),
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(error) => break Err(error),
        }
    };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    ended
}

/// Reads the beginning of a small file, as of /proc, into `buffer`; returns the length.
///
/// # Errors
/// That of open(2) or read(2).
pub fn read_small(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    // SAFETY: the kernel writes at most the buffer's length into it.
    let length = unsafe {
        gate::pass(Syscall(libc::SYS_read, pad([fd, buffer.as_mut_ptr() as usize, buffer.len()])))
    };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    length
}

/// Reads words at `offset` of a file of /proc that consists of them; returns the number of bytes.
///
/// # Errors
/// That of open(2) or pread(2).
pub fn read_small_at(path: &CStr, words: &mut [u64], offset: u64) -> Result<usize, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
    let (start, length) = (words.as_mut_ptr(), size_of_val(words));
    // SAFETY: the kernel writes at most the words' length into them, and any bits are a word.
    let read = unsafe { call!(libc::SYS_pread64, fd, start, length, offset) };
    // SAFETY: the descriptor is the one opened above.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    read
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::format;
    use std::fs::{File, metadata};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn told(status: Result<Status, Errno>) -> std::string::String {
        format!("{status:?}")
    }

    #[test]
    fn both_ways_of_asking_agree() {
        let program = std::env::current_exe().unwrap();
        let file = File::open(&program).unwrap();
        let (read, _write) = std::io::pipe().unwrap();
        let all = || {
            [
                told(status(file.as_raw_fd())),
                told(status(read.as_raw_fd())),
                told(status(-1)),
                told(status_at(libc::AT_FDCWD, c"/".as_ptr())),
                told(status_at(libc::AT_FDCWD, c"/dev/null".as_ptr())),
                told(status_at(libc::AT_FDCWD, c"/not there".as_ptr())),
                told(status_at(libc::AT_FDCWD, core::ptr::null())),
                told(status_now(libc::AT_FDCWD, c"/dev/null".as_ptr())),
            ]
        };
        let by_statx = all();
        let known = status(file.as_raw_fd()).unwrap();
        let wanted = metadata(&program).unwrap();
        assert_eq!((known.device, known.inode), (wanted.dev(), wanted.ino()));
        assert_eq!((known.size, known.links), (wanted.size(), wanted.nlink()));
        assert!(known.regular && known.executable && known.kind == Kind::Disk);
        forgo_statx();
        assert_eq!(all(), by_statx);
    }
}
