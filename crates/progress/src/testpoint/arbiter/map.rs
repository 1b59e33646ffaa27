//! The shared table and its lock.
//!
//! The table is a System V segment. Unlike a file, which can be truncated under its readers so that
//! they die of SIGBUS, a segment cannot shrink while it is in use. It is marked for removal as soon
//! as it is made, so it goes with the last process that has it attached (shmctl(2), `IPC_RMID`;
//! that others may still attach it by its number is Linux's own). The file says which segment it
//! is, and carries the lock.
#![allow(unsafe_code, reason = "attaches shared memory and reads it as a struct of atomics")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use discnice_sys::{Errno, block, shm};
use rustix::fs::{FlockOperation, flock};

use super::layout::{MAGIC, Table};

const SIZE: usize = size_of::<Table>();
/// How often, and how long apart in nanoseconds, the lock is tried.
const TRIES: u32 = 100;
/// How often it is tried by a newcomer, which would go without turns to its end.
const TRIES_TO_OPEN: u32 = 10 * TRIES;
const APART: u64 = 1_000_000;

/// The attached table and the open file that its lock is on.
pub struct Map {
    table: NonNull<Table>,
    file: File,
    /// What the file said.
    place: Place,
}

// SAFETY: the segment is shared memory that consists of atomics only; any thread may use it.
unsafe impl Send for Map {}

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    segment: i32,
    /// Also in the table: tells this segment from a later one of its number.
    nonce: u64,
}

impl Place {
    const LENGTH: usize = 20;

    fn bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.nonce.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.segment.to_ne_bytes());
        bytes
    }

    /// `None` where the file is empty, or not this version's.
    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; Self::LENGTH];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let found = Self {
            segment: i32::from_ne_bytes(bytes[16..].try_into().ok()?),
            nonce: u64::from_ne_bytes(bytes[8..16].try_into().ok()?),
        };
        (found.bytes() == bytes).then_some(found)
    }
}

impl Map {
    /// Attaches the table to which `file` leads; it is made where it is missing, and a table
    /// that all have left is made anew.
    ///
    /// # Errors
    /// As the file system's, and shmget(2)'s. `InvalidData` for a file that is another version's, `WouldBlock` where the
    /// lock is kept for too long.
    pub fn open(file: File) -> io::Result<Self> {
        take(&file, TRIES_TO_OPEN)?;
        let found = Place::read(&file).and_then(|place| Some((place, attach(place)?)));
        let ready = match found {
            Some(found) => Ok(found),
            None => create(&file),
        };
        flock(&file, FlockOperation::Unlock)?;
        let (place, table) = ready?;
        Ok(Self { table, file, place })
    }

    //= ms-manners/7.1-superintendent
    /// Takes the lock; `None` where its holder keeps it for a tenth of a second, or where the file
    /// is no longer the one that was mapped.
    pub fn lock(&self) -> Option<Locked<'_>> {
        take(&self.file, TRIES).ok()?;
        // Given back when it is dropped.
        let locked = Locked(self);
        self.is_whole().then_some(locked)
    }

    /// Returns true if the file still leads here; otherwise newcomers use another table.
    fn is_whole(&self) -> bool {
        Place::read(&self.file) == Some(self.place)
    }
}

/// Takes the lock on the file. A holder may be stopped, and no process waits for it for long.
fn take(file: &File, tries: u32) -> io::Result<()> {
    for _ in 0..tries {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                crate::testpoint::clock::sleep(discnice_units::Nanos(APART));
            }
            taken => return Ok(taken?),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// A new table, and a file that leads to it. A file that says something else was damaged.
fn create(file: &File) -> io::Result<(Place, NonNull<Table>)> {
    let length = file.metadata()?.len();
    if length > Place::LENGTH as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a table of this version"));
    }
    let nonce = rand();
    let segment = shm::create(SIZE).map_err(io_error)?;
    let start = shm::attach(segment).map_err(io_error);
    // From here on it goes with its last user, also if that is killed now.
    shm::remove(segment).map_err(io_error)?;
    let table: NonNull<Table> = start?.cast();
    let place = Place { segment, nonce };
    // SAFETY: the kernel attached SIZE zeroed bytes, page aligned; zeroes are a valid Table.
    unsafe { table.as_ref() }.magic.store(nonce, Ordering::Release);
    file.set_len(0)?;
    file.write_all_at(&place.bytes(), 0)?;
    Ok((place, table))
}

/// The table at this place, if it still exists.
fn attach(place: Place) -> Option<NonNull<Table>> {
    let block = block::adopt_segment(place.segment).ok()?;
    let table: NonNull<Table> = block.start.cast();
    // SAFETY: a segment has its size for ever, and every bit pattern is a Table.
    let is_it = || unsafe { table.as_ref() }.magic.load(Ordering::Acquire) == place.nonce;
    if block.length == SIZE && is_it() {
        return Some(table);
    }
    // SAFETY: attached above, and no reference is left.
    unsafe { block.unmap() };
    None
}

/// A number that no other table has: the standard library's seeds are the kernel's.
fn rand() -> u64 {
    use std::hash::{BuildHasher, Hasher};

    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn io_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

impl Deref for Map {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: the segment is SIZE bytes for ever, page aligned, and attached until drop; every
        // bit pattern is a valid Table, which consists of atomics and integers that are never
        // written.
        unsafe { self.table.as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: attached in `open`; no reference outlives `self`.
        unsafe { shm::detach(self.table.cast()) };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &std::path::Path) -> File {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    //= ms-manners/7.1-superintendent
    #[test]
    fn one_table_for_all_and_none_after_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seats");
        let one = Map::open(file(&path)).unwrap();
        let two = Map::open(file(&path)).unwrap();
        one.high_water.store(7, Ordering::Relaxed);
        assert_eq!(two.high_water.load(Ordering::Relaxed), 7);
        let segment = one.place.segment;
        drop((one, two));
        assert!(shm::inspect(segment).is_err(), "the segment goes with its last user");
        let anew = Map::open(file(&path)).unwrap();
        assert_eq!(anew.high_water.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nothing_that_is_done_to_the_file_harms_its_users() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seats");
        let map = Map::open(file(&path)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for damage in [&b""[..], b"short", &[0xff; 20]] {
            std::fs::write(&path, damage).unwrap();
            assert!(map.lock().is_none());
            map.high_water.store(3, Ordering::Relaxed);
        }
        std::fs::write(&path, whole).unwrap();
        assert!(map.lock().is_some());
        std::fs::write(&path, [0xff; 4096]).unwrap();
        assert!(Map::open(file(&path)).is_err());
    }

    #[test]
    fn a_lock_that_is_never_given_back_keeps_no_newcomer_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seats");
        let (holder, newcomer) = (file(&path), file(&path));
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let opened = Map::open(newcomer).map(drop).map_err(|error| error.kind());
            tell.send(opened)
        });
        let found = told.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(found, Ok(Err(io::ErrorKind::WouldBlock)));
    }

    #[test]
    fn a_number_that_came_to_mean_another_segment_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seats");
        let map = Map::open(file(&path)).unwrap();
        let other = Place { nonce: map.place.nonce ^ 1, ..map.place };
        std::fs::write(&path, other.bytes()).unwrap();
        assert_ne!(Map::open(file(&path)).unwrap().place.segment, map.place.segment);
    }
}
