//! The ledger under its lock.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use discnice_sys::procfs;
use discnice_units::Bytes;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::entry::{Entry, MEMBER, SLOT, is_stopped};
use super::facts::available;

/// A process that holds nothing and has not asked for so many milliseconds competes no more.
const COMPETES: u64 = 1000;

/// Slots that are read: more than there can be processes that wait at once. What lies behind them in a file is not ours.
const MOST: usize = 1 << 16;

/// How long to wait for the lock, and how often to try. Its holders keep it for some milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const APART: Duration = Duration::from_micros(500);

/// The lock, and what the slots say.
pub struct Locked<'a> {
    file: &'a File,
    /// What each slot says, if anything.
    pub slots: Vec<Option<Entry>>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Nothing is left to do about a lock that cannot be given back; closing does it.
        let _ = rustix::fs::flock(self.file, FlockOperation::Unlock);
    }
}

/// Takes the lock; false if it did not come free in time.
fn take(file: &File) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begun.elapsed() >= PATIENCE => return Ok(false),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(APART),
            Err(error) => return Err(error.into()),
            Ok(()) => return Ok(true),
        }
    }
}

impl<'a> Locked<'a> {
    /// Takes the lock, and reads the slots of processes that are alive; `None` if a holder of the lock that is stopped or
    /// frozen keeps it.
    ///
    /// # Errors
    /// Of the file.
    pub fn of(file: &'a File) -> io::Result<Option<Self>> {
        if !take(file)? {
            return Ok(None);
        }
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; (size / SLOT).min(MOST) * SLOT];
        file.read_exact_at(&mut bytes, 0)?;
        // Most processes have two entries, and asking after one takes microseconds.
        let mut known: Vec<(u32, u64, bool)> = Vec::new();
        let mut is_alive = |entry: &Entry| {
            let is_it = |one: &&(u32, u64, bool)| (one.0, one.1) == (entry.pid, entry.started);
            let same = known.iter().find(is_it).map(|one| one.2);
            same.unwrap_or_else(|| {
                let is_alive = procfs::is_same(entry.pid, entry.started);
                known.push((entry.pid, entry.started, is_alive));
                is_alive
            })
        };
        let slots = bytes.chunks_exact(SLOT).map(Entry::from_bytes);
        let slots = slots.map(|slot| slot.filter(&mut is_alive)).collect();
        Ok(Some(Self { file, slots }))
    }

    pub fn write(&mut self, index: usize, entry: Option<Entry>) -> io::Result<()> {
        let slot = entry.map_or([0; SLOT], Entry::to_bytes);
        self.file.write_all_at(&slot, (index * SLOT) as u64)?;
        if index == self.slots.len() {
            self.slots.push(entry);
        } else {
            self.slots[index] = entry;
        }
        Ok(())
    }

    pub fn add(&mut self, entry: Entry) -> io::Result<()> {
        let free = self.slots.iter().position(Option::is_none);
        self.write(free.unwrap_or(self.slots.len()), Some(entry))
    }

    pub fn find(&self, pid: u32, ticket: u64) -> Option<usize> {
        let is = |entry: &Entry| entry.pid == pid && entry.ticket == ticket;
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(is))
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten()
    }

    /// Returns free memory that is not promised.
    pub fn unpromised(&self) -> Bytes {
        let promised: u64 = self.entries().map(Entry::outstanding).sum();
        Bytes::new(available().0.saturating_sub(promised))
    }

    //= gray-box/4.3.2-fair
    /// What each of the processes that compete by `gb_alloc` would have if all had the same: the
    /// first to come must not take all and leave the others waiting on an idle processor.
    pub fn fair_share(&self, unpromised: Bytes, now: u64) -> Bytes {
        let allocated = |entry: &&Entry| !entry.is_command && entry.ticket != MEMBER;
        let granted: u64 = self.entries().filter(allocated).map(|entry| entry.bytes).sum();
        let competing = |member: &&Entry| {
            member.ticket == MEMBER
                && (now.saturating_sub(member.touched) < COMPETES
                    || self.entries().filter(allocated).any(|entry| entry.pid == member.pid))
        };
        let members = self.entries().filter(competing).count() as u64;
        Bytes::new((unpromised.get() + granted) / members.max(1))
    }

    /// Notes that this process competes now.
    pub fn join(&mut self, now: u64) -> io::Result<()> {
        let member = Entry { touched: now, ..Entry::own(MEMBER, Bytes::ZERO, false) };
        match self.find(member.pid, MEMBER) {
            Some(index) => self.write(index, Some(member)),
            None => self.add(member),
        }
    }

    /// Returns the ticket of the first that waits. A stopped process could not take what is there, and must not keep
    /// it from those behind.
    pub fn head(&self) -> Option<u64> {
        let waits = |entry: &&Entry| entry.is_command && entry.bytes == 0 && !is_stopped(entry.pid);
        self.entries().filter(waits).map(|entry| entry.ticket).min()
    }

    /// Greater than every ticket in use; those that have been given back may come again.
    pub fn next_ticket(&self) -> u64 {
        self.entries().map(|entry| entry.ticket).max().unwrap_or(0) + 1
    }
}
