//! What the kernel tells about a thread that waits, and its descriptors.
#![allow(unsafe_code, reason = "process_vm_readv(2) has no safe wrapper")]

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use discnice_ledger::member::Charged;
use rustix::fs::SeekFrom;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::lead::may_take_long;

/// Returns true if `/proc` shows processes by the numbers that this PID namespace gives them, or that cannot be found out
/// now.
#[must_use]
pub fn shows_our_numbers() -> bool {
    match fs::read_link("/proc/self") {
        Ok(link) => link.to_str().and_then(|link| link.parse().ok()) == Some(std::process::id()),
        // Without memory, or by a filter of system calls, nothing is told of what it shows.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// What the kernel has charged to one thread. Unlike the process's own file in /proc this does not
/// count again what children did that it has waited for.
#[derive(Debug)]
pub struct Account(File);

/// One look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// Bytes read and written.
    pub charged: Charged,
    /// Bytes of those written that were dropped, because their file was deleted or truncated.
    pub cancelled: u64,
}

impl Account {
    /// Opens the account of a thread. It stays that thread's: once the thread has ended, reading
    /// fails, even if its number is in use again.
    ///
    /// # Errors
    /// The thread is gone, or may not be looked at: another user's, or its program cannot be read.
    pub fn open(process: u32, thread: u32) -> io::Result<Self> {
        Ok(Self(File::open(format!("/proc/{process}/task/{thread}/io"))?))
    }

    /// Reads it.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn look(&self) -> io::Result<Look> {
        let mut text = [0; 256];
        let length = self.0.read_at(&mut text, 0)?;
        let mut look = Look::default();
        for line in text[..length].split(|byte| *byte == b'\n') {
            let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
            let (label, value) = line.split_at(space);
            match label {
                b"read_bytes:" => look.charged.read = number(value),
                b"write_bytes:" => look.charged.written = number(value),
                b"cancelled_write_bytes:" => look.cancelled = number(value),
                _ => {}
            }
        }
        Ok(look)
    }
}

fn number(text: &[u8]) -> u64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number.wrapping_mul(10) + u64::from(digit - b'0'))
}

/// A field of `/proc/ID/status`, for example `Tgid`.
#[must_use]
pub fn field(text: &str, label: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
    Some(rest.trim().to_owned())
}

/// What `/proc/ID/status` says of a thread. The name in it may be any bytes.
#[must_use]
pub fn status(thread: u32) -> Option<String> {
    let text = fs::read(format!("/proc/{thread}/status")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The process that a thread belongs to.
#[must_use]
pub fn process_of(thread: u32) -> Option<u32> {
    field(&status(thread)?, "Tgid")?.parse().ok()
}

/// The name of a process's program, as ps(1) shows it.
#[must_use]
pub fn name_of(process: u32) -> Vec<u8> {
    let mut name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    name.pop();
    name
}

/// A process, whatever becomes of its number. pidfd_open(2)
#[must_use]
pub fn pin(process: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(process.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A descriptor of a process that is pinned, as one of ours: to ask and advise, and to close at once.
/// Kept, it would hold pipes open and files busy that the program believes closed.
///
/// Where Yama forbids to take descriptors (`ptrace_scope` 1 and more), a regular file is opened
/// anew instead: then read-ahead can be started, but not shaped.
#[must_use]
pub fn borrow(process: u32, pinned: &OwnedFd, fd: i32) -> Option<OwnedFd> {
    // Programs pass on what a failed open(2) returned; the wrapper of the call takes that for a mistake of ours.
    if fd < 0 {
        return None;
    }
    match pidfd_getfd(pinned, fd, PidfdGetfdFlags::empty()) {
        Ok(fd) => Some(fd),
        Err(rustix::io::Errno::PERM) => reopen(process, fd),
        Err(_) => None,
    }
}

/// Opens a regular file of a process anew, at the same offset and for reading only. This may ask
/// the file's daemon.
#[must_use]
pub fn reopen(process: u32, fd: i32) -> Option<OwnedFd> {
    may_take_long();
    let path = format!("/proc/{process}/fd/{fd}");
    // To open anything else may have effects: on a pipe's other end, on a tape.
    let regular = fs::metadata(&path).ok()?.is_file();
    let opened = if regular { File::open(path).ok()? } else { return None };
    let facts = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).ok()?;
    let position = field(&facts, "pos")?.parse().ok()?;
    rustix::fs::seek(&opened, SeekFrom::Start(position)).ok()?;
    Some(opened.into())
}

/// Entries of a vector that are looked at; the rest of a longer one counts as nothing.
const ENTRIES: usize = 64;

/// The bytes that a vector in a thread's memory asks for: a claim, as the thread may change it
/// before the kernel reads it.
#[must_use]
pub fn vector(thread: u32, address: u64, count: u64) -> Option<u64> {
    let mut entries = [[0u64; 2]; ENTRIES];
    let count = ENTRIES.min(count as usize);
    let length = count * size_of::<[u64; 2]>();
    let local = libc::iovec { iov_base: entries.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: length };
    let thread = i32::try_from(thread).ok()?;
    // SAFETY: the kernel writes at most `length` bytes, which `entries` has, and checks the other
    // process's address itself.
    let read =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    let sum = entries.iter().take(count).fold(0u64, |sum, entry| sum.saturating_add(entry[1]));
    (read == length as isize).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_any_name_is_known() {
        let own = std::process::id();
        for name in [c"plain", c"caf\xe9", c"two\nlines", c"Tgid:\t1"] {
            let named = std::thread::spawn(move || {
                rustix::thread::set_name(name).unwrap();
                process_of(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned())
            });
            assert_eq!(named.join().unwrap(), Some(own), "{name:?}");
        }
        assert_eq!(process_of(u32::MAX >> 1), None);
    }

    #[test]
    fn no_descriptor_of_a_program_is_taken_for_granted() {
        let own = std::process::id();
        let pinned = pin(own).unwrap();
        for fd in [-1, i32::MIN, i32::MAX] {
            assert!(borrow(own, &pinned, fd).is_none(), "{fd}");
        }
    }
}
