//! System calls without a safe wrapper.
#![allow(
    unsafe_code,
    reason = "sync_file_range, fcntl(F_SETLEASE) and FS_IOC_FSGETXATTR have no safe wrapper"
)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// The signal that tells a lease holder of another opener (fcntl(2), asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;

/// Sends the file's dirty pages on their way to the disk. Without delay the file system chooses
/// their place now, not in the order that write-back likes. Where it is refused, the final sync
/// does the work.
pub fn start_writing(file: &File) {
    // SAFETY: plain numbers; the call starts the writing of the descriptor's own dirty pages.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// `struct fsxattr` (linux/fs.h): what of a file's attributes chattr(1) and ioctl_getflags do not tell, and what they do.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    shared_extent_size: u32,
    padding: [u8; 8],
}

/// `_IOR('X', 31, struct fsxattr)` and `_IOW('X', 32, struct fsxattr)`.
const FS_IOC_FSGETXATTR: libc::c_ulong = 0x801C_581F;
const FS_IOC_FSSETXATTR: libc::c_ulong = 0x401C_5820;
/// `FS_XFLAG_REALTIME`, `_EXTSIZE`, `_NODEFRAG`, `_FILESTREAM`, `_DAX`, `_COWEXTSIZE`.
const SET_BY_PEOPLE: u32 = 0x1 | 0x800 | 0x2000 | 0x4000 | 0x8000 | 0x1_0000;

impl Attributes {
    /// Asks for those of a file.
    ///
    /// # Errors
    /// As ioctl(2), where the file system has none.
    pub fn of(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let mut told = Self::default();
        // SAFETY: the kernel fills in the structure, which has its layout and outlives the call.
        let rc = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FSGETXATTR as _, &raw mut told) };
        result(rc).map(|()| told)
    }

    /// Gives a file those of another, but for flags that are the file system's own business.
    ///
    /// # Errors
    /// As ioctl(2).
    pub fn give(&self, fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let own = Self::of(fd)?.flags & !SET_BY_PEOPLE;
        let wanted = Self { flags: own | self.flags & SET_BY_PEOPLE, ..*self };
        // SAFETY: the kernel reads the structure, which has its layout and outlives the call.
        let rc = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FSSETXATTR as _, &raw const wanted) };
        result(rc)
    }

    /// Returns true if a copy is to have nothing else.
    pub fn are_as(&self, other: &Self) -> bool {
        let kept = |of: &Self| (of.flags & SET_BY_PEOPLE, of.extent_size, of.project);
        kept(self) == kept(other) && self.shared_extent_size == other.shared_extent_size
    }
}

fn result(rc: libc::c_int) -> rustix::io::Result<()> {
    let error = std::io::Error::last_os_error();
    if rc == 0 { Ok(()) } else { Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)) }
}

/// Why a lease was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {
    /// Another descriptor has the file open or mapped.
    InUse,
    /// The file system has no leases, or they are switched off or not allowed for this file.
    Unknown,
}

/// A write lease on a regular file, given back when dropped. The kernel grants it only while no
/// other descriptor of any process has the file open or mapped, and makes later openers wait.
#[derive(Debug)]
pub struct Lease<'a>(BorrowedFd<'a>);

impl<'a> Lease<'a> {
    /// Takes the lease on the file of this descriptor, which must be the only one.
    ///
    /// # Errors
    /// As [`NoLease`] says.
    pub fn take(fd: BorrowedFd<'a>) -> Result<Self, NoLease> {
        // SAFETY: plain numbers. An opener makes the kernel send the signal set here, SIGURG,
        // which is ignored unless a handler is set; without, it were SIGIO, which kills.
        let rc = unsafe {
            libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGURG);
            libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        match rc {
            0 => Ok(Self(fd)),
            _ => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => Err(NoLease::InUse),
                _ => Err(NoLease::Unknown),
            },
        }
    }

    /// True if no opener waits for the lease to be given back, nor has waited so long that the
    /// kernel broke it.
    pub fn is_unbroken(&self) -> bool {
        // SAFETY: plain numbers.
        let kind = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) };
        kind == libc::F_WRLCK
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // SAFETY: plain numbers.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}
