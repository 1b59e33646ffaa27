//! A file that we open for a moment.

use core::ffi::{CStr, c_char};

use crate::raw::{Errno, call};

/// A descriptor of our own, closed when it goes out of use. The program never sees it, unless it
/// forks meanwhile in another thread; an executed program does not.
#[derive(Debug)]
pub struct Opened(i32);

impl Opened {
    /// Opens a file for reading, by a path relative to the directory `at` (`AT_FDCWD` for the
    /// current one). openat(2); no FIFO or terminal makes it wait.
    ///
    /// # Errors
    /// That of openat(2), among them `EFAULT` for a path that cannot be read.
    pub fn open(at: i32, path: *const c_char) -> Result<Self, Errno> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the kernel checks the path's address.
        let fd = unsafe { call!(libc::SYS_openat, at, path, flags, 0)? };
        Ok(Self(fd as i32))
    }

    /// Opens the file at an absolute path for reading and writing, to share its memory. Of a symbolic link that
    /// the path ends in, nothing is opened. open(2)
    ///
    /// # Errors
    /// That of open(2), among them `ELOOP` for a symbolic link.
    pub fn open_shared(path: &CStr) -> Result<Self, Errno> {
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let flags = flags | libc::O_NOFOLLOW;
        // SAFETY: the path is a C string.
        let fd = unsafe { call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)? };
        Ok(Self(fd as i32))
    }

    /// Opens the file of a descriptor of the program's once more, for reading. proc_pid_fd(5)
    ///
    /// # Errors
    /// As [`Self::open`]; `ENOENT` where there is no /proc.
    pub fn reopen(fd: i32) -> Result<Self, Errno> {
        Self::open(libc::AT_FDCWD, Link::of(fd).0.as_ptr().cast())
    }

    /// The descriptor.
    #[must_use]
    pub fn fd(&self) -> i32 {
        self.0
    }

    /// Reads at an offset until the buffer is full or the file ends; returns how much was read.
    /// pread(2).
    #[must_use]
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let (to, length) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the kernel writes at most the buffer's length into it.
        unsafe { call!(libc::SYS_pread64, self.0, to, length, offset) }.unwrap_or(0).min(length)
    }

    /// Writes the file's path into the buffer; returns the length, zero where it is not known or
    /// does not fit. readlink(2) of /proc/self/fd.
    #[must_use]
    pub fn path(&self, buffer: &mut [u8]) -> usize {
        let (link, length) = (Link::of(self.0), buffer.len());
        let (from, to) = (link.0.as_ptr(), buffer.as_mut_ptr());
        // SAFETY: the link is a C string; the kernel writes at most the buffer's length into it.
        let read = unsafe { call!(libc::SYS_readlinkat, libc::AT_FDCWD, from, to, length) };
        read.ok().filter(|read| *read < length).unwrap_or(0)
    }
}

/// The name of a descriptor's link in /proc, a C string.
struct Link([u8; 25]);

impl Link {
    fn of(fd: i32) -> Self {
        let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
        let number = fd.unsigned_abs();
        let digits = number.checked_ilog10().unwrap_or(0) + 1;
        let places = link.iter_mut().skip(b"/proc/self/fd/".len());
        for (place, power) in places.zip((0..digits).rev()) {
            let above = number.checked_div(10u32.wrapping_pow(power)).unwrap_or(0);
            *place = b'0' + (above % 10) as u8;
        }
        Self(link)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the descriptor was opened by us, and no other code knows of it.
        let _ = unsafe { call!(libc::SYS_close, self.0) };
    }
}
