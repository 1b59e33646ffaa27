//! What the kernel accounts to processes and threads, as `/proc` shows it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use discnice_ledger::member::Charged;
use discnice_sys::procfs;
use rustix::process::{Resource, getrlimit};

use crate::process;

/// What the kernel accounts (proc(5), `/proc/PID/io`), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    /// Read from devices, read-ahead included.
    pub read: u64,
    /// Made dirty, or written directly.
    pub written: u64,
    /// Of what was made dirty: dropped, because its file was truncated or deleted.
    pub cancelled: u64,
}

impl From<Io> for Charged {
    fn from(io: Io) -> Self {
        Self { read: io.read, written: io.written }
    }
}

impl Io {
    pub(super) fn parse(text: &str) -> Option<Self> {
        // The kernel's order is characters, calls, bytes; all but the last three lines are passed over.
        let mut lines = text.lines().skip_while(|line| !line.starts_with("read_bytes: "));
        let mut number = |label: &str| lines.next()?.strip_prefix(label)?.parse::<u64>().ok();
        Some(Self {
            read: number("read_bytes: ")?,
            written: number("write_bytes: ")?,
            cancelled: number("cancelled_write_bytes: ")?,
        })
    }

    fn zip(self, other: Self, each: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read: each(self.read, other.read),
            written: each(self.written, other.written),
            cancelled: each(self.cancelled, other.cancelled),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    pub(super) fn min(self, other: Self) -> Self {
        self.zip(other, u64::min)
    }

    pub(super) fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }
}

/// A file of a process in /proc, kept open: one look costs about a microsecond.
#[derive(Debug)]
pub(super) struct Source {
    path: String,
    /// `None` when descriptors were short: then it is opened for each look.
    file: Option<File>,
}

impl Source {
    pub(super) fn open(path: String) -> io::Result<Self> {
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file: Some(file) }),
            Err(error) if is_exhausted(&error) => Ok(Self { path, file: None }),
            Err(error) => Err(error),
        }
    }

    /// Opens one that can do without a descriptor of its own: it leaves half of them to others.
    pub(super) fn open_if_plenty(path: String) -> Self {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let is_plenty =
            |file: &File| file.as_raw_fd().unsigned_abs() < u32::try_from(most).unwrap_or(u32::MAX);
        let file = File::open(&path).ok().filter(is_plenty);
        Self { path, file }
    }

    /// Its text, of so many bytes at most.
    pub(super) fn read<'a>(&self, text: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let length = match &self.file {
            Some(file) => file.read_at(text, 0)?,
            None => File::open(&self.path)?.read_at(text, 0)?,
        };
        Ok(&text[..length])
    }

    /// What it says, as an account.
    pub(super) fn account(&self) -> io::Result<Io> {
        let mut text = [0; 512];
        let text = std::str::from_utf8(self.read(&mut text)?).map_err(io::Error::other)?;
        Io::parse(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// The accounts of a process's living threads; none while it executes a program.
#[must_use]
pub fn threads(id: u32) -> HashMap<u32, Io> {
    if procfs::is_executing(id) {
        return HashMap::new();
    }
    let io = |thread| Io::parse(&fs::read_to_string(format!("/proc/{id}/task/{thread}/io")).ok()?);
    process::threads(id).filter_map(|thread| Some((thread, io(thread)?))).collect()
}

pub(super) fn sum<'a>(accounts: impl IntoIterator<Item = &'a Io>) -> Io {
    accounts.into_iter().fold(Io::default(), |sum, io| sum.plus(*io))
}
