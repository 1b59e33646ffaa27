//! The mapping of the shared table.
#![allow(unsafe_code, reason = "maps a file and reads it as a struct of atomics")]

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::layout::{MAGIC, Table};

const SIZE: usize = size_of::<Table>();
/// How often, and how long apart in nanoseconds, the lock is tried.
const TRIES: u32 = 100;
const APART: u64 = 1_000_000;

/// The mapped table and the open file that its lock is on.
pub struct Map {
    table: NonNull<Table>,
    file: File,
}

// SAFETY: the mapping is shared memory that consists of atomics only; any thread may use it.
unsafe impl Send for Map {}

impl Map {
    /// Maps the table in `path`, which is made where it is missing.
    ///
    /// # Errors
    /// As the file system's, and `InvalidData` for a file that is not this version's table.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let ready = prepare(&file);
        flock(&file, FlockOperation::Unlock)?;
        ready?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no other memory.
        let start =
            unsafe { mmap(std::ptr::null_mut(), SIZE, protection, MapFlags::SHARED, &file, 0) }?;
        let table = NonNull::new(start.cast()).ok_or(Errno::FAULT)?;
        Ok(Self { table, file })
    }

    /// Takes the lock; `None` where its holder keeps it for a tenth of a second, or where the file
    /// is no longer the one that was mapped.
    pub fn lock(&self) -> Option<Locked<'_>> {
        for _ in 0..TRIES {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_whole() => return Some(Locked(self)),
                Ok(()) => {
                    let _ = flock(&self.file, FlockOperation::Unlock);
                    return None;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    crate::clock::sleep(discnice_units::Nanos(APART));
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// Whether the file still has its size: touching a page beyond the end would be fatal.
    fn is_whole(&self) -> bool {
        fstat(&self.file).is_ok_and(|found| found.st_size == SIZE as i64)
    }
}

/// Gives a new file its size and its first word; refuses anything else.
fn prepare(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length == 0 {
        // Real blocks, so that a full disk shows here and not as a fatal fault later.
        fallocate(file, FallocateFlags::empty(), 0, SIZE as u64)?;
        return file.write_all_at(&MAGIC.to_ne_bytes(), 0);
    }
    let mut magic = [0; 8];
    file.read_exact_at(&mut magic, 0)?;
    if length != SIZE as u64 || u64::from_ne_bytes(magic) != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a table of this version"));
    }
    Ok(())
}

impl Deref for Map {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: the mapping is SIZE bytes, page aligned, and lives until drop; every bit pattern
        // is a valid Table, which consists of atomics and integers that nobody writes.
        unsafe { self.table.as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: made by mmap with this length in `open`; no reference outlives `self`.
        let _ = unsafe { munmap(self.table.as_ptr().cast(), SIZE) };
    }
}

/// Holds the lock until dropped. A process that is killed meanwhile loses it to the next.
pub struct Locked<'a>(&'a Map);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Orders the table's words before the next holder's reading of them.
        std::sync::atomic::fence(Ordering::Release);
        let _ = flock(&self.0.file, FlockOperation::Unlock);
    }
}
