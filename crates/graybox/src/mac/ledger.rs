//! Memory promised to each process, shared by all callers of a user.
//!
//! A file of 64-byte slots under one lock (flock(2), released when its holder dies; if one is stopped while it holds it,
//! nothing is promised, and what is given back or settled is not noted). Every change
//! writes one slot with one write that lies within a page, which a kill cannot tear. An entry of a
//! process that has ended, recognised by process id and start time, is free.

use std::fs::File;
use std::io;

use discnice_units::Bytes;
use rustix::fs::OFlags;

use super::Demand;
use super::entry::Entry;
use super::facts::pressed;
use super::locked::Locked;

/// The promises of one user.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

/// How an attempt to be admitted ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// So much memory is promised.
    Granted(Bytes),
    /// Too little is there, or others were first. These processes hold promises: the end of one
    /// is a good time to ask again.
    Wait(Vec<u32>),
}

impl Ledger {
    /// The ledger of this user.
    ///
    /// # Errors
    /// As [`discnice_paths::runtime`] and open(2).
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        Ok(Self { file: discnice_paths::runtime()?.open("memory-grants", flags)? })
    }

    /// A ledger of a test's own.
    #[cfg(test)]
    pub(super) fn open_at(path: &std::path::Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file })
    }

    fn lock(&self) -> io::Result<Option<Locked<'_>>> {
        Locked::of(&self.file)
    }

    //= gray-box/4.3-atomic
    /// Takes the least that `demand` can do with or `first`, whichever is more, if so much is
    /// available now and no process waits for it; returns a ticket and what is promised. More
    /// comes by [`Ledger::extend`].
    ///
    /// # Errors
    /// Of the file.
    pub fn take(&self, demand: &Demand, first: Bytes) -> io::Result<Option<(u64, Bytes)>> {
        // Before the lock, as it may take a while.
        let pressed = pressed();
        let Some(mut locked) = self.lock()? else { return Ok(None) };
        locked.join(millis_since_boot())?;
        if pressed || locked.head().is_some() {
            return Ok(None);
        }
        let first = locked.unpromised().min(first.max(demand.least()));
        let Some(bytes) = demand.take(first) else { return Ok(None) };
        let ticket = locked.next_ticket();
        locked.add(Entry::own(ticket, bytes, false))?;
        Ok(Some((ticket, bytes)))
    }

    /// Notes that all of a promise has been touched, and asks that it grow to `wanted`;
    /// returns its new size. It gets no more than a fair share if other processes compete, even if
    /// they came after the promise began, and never passes those that wait.
    ///
    /// # Errors
    /// Of the file.
    pub fn extend(&self, ticket: u64, wanted: Bytes) -> io::Result<Bytes> {
        let Some(mut locked) = self.lock()? else { return Ok(Bytes::ZERO) };
        let Some(index) = locked.find(std::process::id(), ticket) else { return Ok(Bytes::ZERO) };
        let Some(entry) = locked.slots[index] else { return Ok(Bytes::ZERO) };
        locked.slots[index] = Some(Entry { touched: entry.bytes, ..entry });
        let free = if locked.head().is_some() { Bytes::ZERO } else { locked.unpromised() };
        let share = locked.fair_share(free, millis_since_boot());
        let promised = Bytes::new(entry.bytes);
        let bytes = wanted.min(share).min(promised.plus(free)).max(promised);
        let touched = entry.bytes;
        locked.write(index, Some(Entry { bytes: bytes.get(), touched, ..entry }))?;
        Ok(bytes)
    }

    /// Says that of a promise so much is kept, all of it touched.
    ///
    /// # Errors
    /// Of the file.
    pub fn settle(&self, ticket: u64, kept: Bytes) -> io::Result<()> {
        let Some(mut locked) = self.lock()? else { return Ok(()) };
        let Some(index) = locked.find(std::process::id(), ticket) else { return Ok(()) };
        let (entry, bytes) = (locked.slots[index], kept.get());
        locked.write(index, entry.map(|entry| Entry { bytes, touched: bytes, ..entry }))
    }

    /// Gives a promise or a place in the queue back.
    ///
    /// # Errors
    /// Of the file.
    pub fn give_back(&self, ticket: u64) -> io::Result<()> {
        let Some(mut locked) = self.lock()? else { return Ok(()) };
        match locked.find(std::process::id(), ticket) {
            Some(index) => locked.write(index, None),
            None => Ok(()),
        }
    }

    /// Queues up for a promise to the command that this process will become; returns the ticket, or `None` while a holder of
    /// the lock that is stopped keeps it.
    ///
    /// # Errors
    /// Of the file.
    pub fn queue(&self) -> io::Result<Option<u64>> {
        let Some(mut locked) = self.lock()? else { return Ok(None) };
        let ticket = locked.next_ticket();
        locked.add(Entry::own(ticket, Bytes::ZERO, true))?;
        Ok(Some(ticket))
    }

    //= gray-box/4.3.2-deadlock
    /// Tries to be admitted: only the first in the queue is, so that a large demand is not
    /// starved by small ones.
    ///
    /// # Errors
    /// Of the file.
    pub fn admit(&self, ticket: u64, demand: &Demand) -> io::Result<Admission> {
        let pressed = pressed();
        let Some(mut locked) = self.lock()? else { return Ok(Admission::Wait(Vec::new())) };
        let holders = |locked: &Locked<'_>| {
            let others = locked.entries().filter(|entry| entry.ticket != ticket);
            others.map(|entry| entry.pid).collect()
        };
        if pressed || locked.head() != Some(ticket) {
            return Ok(Admission::Wait(holders(&locked)));
        }
        let Some(bytes) = demand.take(locked.unpromised()) else {
            return Ok(Admission::Wait(holders(&locked)));
        };
        match locked.find(std::process::id(), ticket) {
            Some(index) => locked.write(index, Some(Entry::own(ticket, bytes, true)))?,
            None => locked.add(Entry::own(ticket, bytes, true))?,
        }
        Ok(Admission::Granted(bytes))
    }
}

fn millis_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::entry::{MEMBER, SLOT, start_time};
    use super::super::facts::available;
    use super::*;

    const BYTE: Bytes = Bytes::new(1);
    const MIB: Bytes = Bytes::new(1 << 20);
    const MOST: Bytes = Bytes::new(u64::MAX);

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open_at(&dir.path().join("grants")).unwrap();
        (dir, ledger)
    }

    #[test]
    fn a_promise_counts_until_it_is_given_back() {
        let (_dir, ledger) = ledger();
        let all = Demand::new(MIB, Bytes::new(1 << 50), MIB).unwrap();
        let (ticket, bytes) = ledger.take(&all, MOST).unwrap().unwrap();
        assert!(bytes >= MIB);
        let as_much = Demand::new(Bytes::new(bytes.get() / 2), bytes, BYTE).unwrap();
        assert_eq!(ledger.take(&as_much, MOST).unwrap(), None, "the same memory twice");
        ledger.give_back(ticket).unwrap();
        assert!(ledger.take(&as_much, MOST).unwrap().is_some());
    }

    #[test]
    fn nothing_waits_for_a_holder_of_the_lock_that_is_stopped() {
        let (dir, ledger) = ledger();
        let small = Demand::new(MIB, MIB, BYTE).unwrap();
        let (ticket, _) = ledger.take(&small, Bytes::ZERO).unwrap().unwrap();
        let stopped = Ledger::open_at(&dir.path().join("grants")).unwrap();
        let lock = stopped.lock().unwrap().unwrap();
        let begun = std::time::Instant::now();
        assert_eq!(ledger.take(&small, Bytes::ZERO).unwrap(), None);
        assert_eq!(ledger.queue().unwrap(), None);
        assert_eq!(ledger.admit(ticket, &small).unwrap(), Admission::Wait(Vec::new()));
        assert_eq!(ledger.extend(ticket, MIB.plus(MIB)).unwrap(), Bytes::ZERO);
        ledger.settle(ticket, MIB).unwrap();
        ledger.give_back(ticket).unwrap();
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        drop(lock);
        assert!(ledger.take(&small, Bytes::ZERO).unwrap().is_some());
    }

    #[test]
    fn a_file_of_any_length_is_used_at_once() {
        let (_dir, ledger) = ledger();
        ledger.file.set_len(4 << 30).unwrap();
        let begun = std::time::Instant::now();
        let ticket = ledger.queue().unwrap().unwrap();
        ledger.give_back(ticket).unwrap();
        assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
        assert_eq!(ledger.file.metadata().unwrap().len(), 4 << 30, "nothing is cut off");
    }

    //= gray-box/4.3-atomic
    //= gray-box/4.3.2-fair
    #[test]
    fn competing_processes_share() {
        let (_dir, ledger) = ledger();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        while discnice_sys::procfs::is_executing(other.id()) {}
        let member = Entry {
            pid: other.id(),
            started: start_time(other.id()).unwrap(),
            ticket: MEMBER,
            bytes: 0,
            touched: millis_since_boot(),
            is_command: false,
        };
        ledger.lock().unwrap().unwrap().add(member).unwrap();
        let all = Demand::new(MIB, Bytes::new(1 << 50), MIB).unwrap();
        let most_of_it = Bytes::new(available().0 / 3 * 2);
        let (ticket, bytes) = ledger.take(&all, Bytes::ZERO).unwrap().unwrap();
        assert_eq!(bytes, MIB);
        let bytes = ledger.extend(ticket, MOST).unwrap();
        assert!((MIB..=most_of_it).contains(&bytes), "{bytes}, of which {most_of_it} is no half");
        other.kill().unwrap();
        other.wait().unwrap();
        // As nothing was touched, the kernel does not know yet of the first part.
        let bytes = ledger.extend(ticket, MOST).unwrap();
        assert!(bytes > most_of_it, "the dead do not compete");
    }

    //= gray-box/4.3.2-deadlock
    #[test]
    fn only_the_first_in_the_queue_is_admitted() {
        let (_dir, ledger) = ledger();
        let small = Demand::new(BYTE, BYTE, BYTE).unwrap();
        let huge = Bytes::new(1 << 60);
        let huge = Demand::new(huge, huge, BYTE).unwrap();
        let (first, second) = (ledger.queue().unwrap().unwrap(), ledger.queue().unwrap().unwrap());
        assert!(matches!(ledger.admit(first, &huge).unwrap(), Admission::Wait(_)));
        assert!(matches!(ledger.admit(second, &small).unwrap(), Admission::Wait(_)));
        assert_eq!(ledger.take(&small, Bytes::ZERO).unwrap(), None, "passed the queue");
        ledger.give_back(first).unwrap();
        assert_eq!(ledger.admit(second, &small).unwrap(), Admission::Granted(BYTE));
    }

    #[test]
    fn the_dead_and_garbage_are_free() {
        let (_dir, ledger) = ledger();
        let dead = Entry {
            pid: 1,
            started: 12345,
            ticket: 9,
            bytes: 1 << 60,
            touched: 0,
            is_command: false,
        };
        ledger.file.write_all_at(&dead.to_bytes(), 0).unwrap();
        ledger.file.write_all_at(&[0xAB; SLOT + 7], SLOT as u64).unwrap();
        let locked = ledger.lock().unwrap().unwrap();
        assert_eq!(locked.entries().count(), 0);
        assert_eq!(locked.slots.len(), 2);
    }
}
