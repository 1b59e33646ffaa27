//! Who has been promised how much memory, shared by all callers of a user.
//!
//! A file of 64-byte slots under one lock (flock(2), which a dying holder gives back). Every
//! change writes one slot with one write that lies within a page, which a kill cannot tear. An
//! entry whose process has ended, known by process id and start time, is free.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::FlockOperation;

use super::Demand;
use super::facts::{available, pressed};

/// First bytes of every slot in use; changes when the layout does.
const MAGIC: u64 = u64::from_le_bytes(*b"dnmem\0\0\x01");
const SLOT: usize = 64;

/// Ticket of a member; others count from 1.
const MEMBER: u64 = 0;
/// A process that holds nothing and has not asked for so many milliseconds competes no more.
const COMPETES: u64 = 1000;

/// The promises of one user.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    pid: u32,
    /// Start time of the process in clock ticks since boot: ids are used again.
    started: u64,
    /// Distinguishes the entries of a process, and orders those who wait. [`MEMBER`] of the one
    /// that says that the process competes for memory.
    ticket: u64,
    /// Promised bytes; 0 of one who waits.
    bytes: u64,
    /// Of the promised bytes, touched, so that the kernel's figures know them. Of a command
    /// ([`Entry::is_command`]), what it uses is looked up instead; of a member, it is the moment
    /// of its last request, in milliseconds since boot.
    touched: u64,
    is_command: bool,
}

impl Entry {
    fn to_bytes(self) -> [u8; SLOT] {
        let words = [
            MAGIC,
            u64::from(self.pid),
            self.started,
            self.ticket,
            self.bytes,
            self.touched,
            u64::from(self.is_command),
        ];
        let mut slot = [0; SLOT];
        for (place, word) in slot.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        slot
    }

    /// `None` of a free slot and of one with a foreign layout.
    fn from_bytes(slot: &[u8]) -> Option<Self> {
        let word = |index: usize| {
            slot.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_le_bytes)
        };
        (word(0)? == MAGIC).then_some(())?;
        Some(Self {
            pid: word(1)?.try_into().ok()?,
            started: word(2)?,
            ticket: word(3)?,
            bytes: word(4)?,
            touched: word(5)?,
            is_command: word(6)? != 0,
        })
    }

    /// Promised bytes that nobody has touched yet.
    fn outstanding(&self) -> u64 {
        let touched = if self.is_command { resident(self.pid) } else { self.touched };
        self.bytes.saturating_sub(touched)
    }
}

/// Field 22 of /proc/PID/stat; `None` of a process that has ended, also if nobody has waited for
/// it yet.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, may contain anything but ends at the last parenthesis.
    let mut after = stat.rsplit_once(')')?.1.split_whitespace();
    (after.next()? != "Z").then_some(())?;
    after.nth(18)?.parse().ok()
}

/// Anonymous memory of a process and its descendants, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let own: u64 =
        anonymous.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below: u64 =
        children.split_whitespace().filter_map(|child| child.parse().ok()).map(resident).sum();
    own * 1024 + below
}

/// The lock, and what the slots say.
struct Locked<'a> {
    file: &'a File,
    slots: Vec<Option<Entry>>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Nothing is left to do about a lock that cannot be given back; closing does it.
        let _ = rustix::fs::flock(self.file, FlockOperation::Unlock);
    }
}

impl Locked<'_> {
    fn write(&mut self, index: usize, entry: Option<Entry>) -> io::Result<()> {
        let slot = entry.map_or([0; SLOT], Entry::to_bytes);
        self.file.write_all_at(&slot, (index * SLOT) as u64)?;
        if index == self.slots.len() {
            self.slots.push(entry);
        } else {
            self.slots[index] = entry;
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) -> io::Result<()> {
        let free = self.slots.iter().position(Option::is_none);
        self.write(free.unwrap_or(self.slots.len()), Some(entry))
    }

    fn find(&self, pid: u32, ticket: u64) -> Option<usize> {
        let is = |entry: &Entry| entry.pid == pid && entry.ticket == ticket;
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(is))
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten()
    }

    /// Free memory that has been promised to nobody.
    fn unpromised(&self) -> u64 {
        let promised: u64 = self.entries().map(Entry::outstanding).sum();
        available().0.saturating_sub(promised)
    }

    /// What each of the processes that compete by `gb_alloc` would have if all had the same: the
    /// first to come must not take all and leave the others waiting on an idle processor.
    fn fair_share(&self, unpromised: u64, now: u64) -> u64 {
        let allocated = |entry: &&Entry| !entry.is_command && entry.ticket != MEMBER;
        let granted: u64 = self.entries().filter(allocated).map(|entry| entry.bytes).sum();
        let competing = |member: &&Entry| {
            member.ticket == MEMBER
                && (now.saturating_sub(member.touched) < COMPETES
                    || self.entries().filter(allocated).any(|entry| entry.pid == member.pid))
        };
        let members = self.entries().filter(competing).count() as u64;
        (unpromised + granted) / members.max(1)
    }

    /// Notes that this process competes now.
    fn join(&mut self, now: u64) -> io::Result<()> {
        let member = Entry { touched: now, ..own_entry(MEMBER, 0, false) };
        match self.find(member.pid, MEMBER) {
            Some(index) => self.write(index, Some(member)),
            None => self.add(member),
        }
    }

    /// The ticket of the first who waits.
    fn head(&self) -> Option<u64> {
        let waits = |entry: &&Entry| entry.is_command && entry.bytes == 0;
        self.entries().filter(waits).map(|entry| entry.ticket).min()
    }
}

/// How an attempt to be admitted ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// This many bytes are promised.
    Granted(u64),
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
        Self::open_at(&discnice_paths::runtime()?.join("memory-grants"))
    }

    /// A ledger at a path of the caller's choice.
    ///
    /// # Errors
    /// As open(2).
    pub fn open_at(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(Self { file: options.open(path)? })
    }

    fn lock(&self) -> io::Result<Locked<'_>> {
        rustix::fs::flock(&self.file, FlockOperation::LockExclusive)?;
        let size = usize::try_from(self.file.metadata()?.len()).unwrap_or(0);
        let mut bytes = vec![0; size / SLOT * SLOT];
        self.file.read_exact_at(&mut bytes, 0)?;
        // Most processes have two entries, and asking after one takes microseconds.
        let mut known: Vec<(u32, Option<u64>)> = Vec::new();
        let mut is_alive = |entry: &Entry| {
            let same = known.iter().find(|(pid, _)| *pid == entry.pid).copied();
            let (_, started) = same.unwrap_or_else(|| {
                known.push((entry.pid, start_time(entry.pid)));
                known[known.len() - 1]
            });
            started == Some(entry.started)
        };
        let slots = bytes.chunks_exact(SLOT).map(Entry::from_bytes);
        let slots = slots.map(|slot| slot.filter(&mut is_alive)).collect();
        Ok(Locked { file: &self.file, slots })
    }

    /// Takes the least that `demand` can do with or `first` bytes, whichever is more, if they are
    /// there now and nobody waits for them; returns a ticket and the bytes promised. More comes by
    /// [`Ledger::extend`].
    ///
    /// # Errors
    /// Of the file.
    pub fn take(&self, demand: &Demand, first: u64) -> io::Result<Option<(u64, u64)>> {
        // Before the lock, as it may take a while.
        let pressed = pressed();
        let mut locked = self.lock()?;
        locked.join(millis_since_boot())?;
        if pressed || locked.head().is_some() {
            return Ok(None);
        }
        let first = locked.unpromised().min(first.max(demand.least()));
        let Some(bytes) = demand.take(first) else { return Ok(None) };
        let ticket = next_ticket(&locked);
        locked.add(own_entry(ticket, bytes, false))?;
        Ok(Some((ticket, bytes)))
    }

    /// Says that all of a promise has been touched, and asks that it grow to `wanted` bytes; returns
    /// to how many it does. No more than a fair share if other processes compete, also such as
    /// came after the promise began, and not at all past those who wait.
    ///
    /// # Errors
    /// Of the file.
    pub fn extend(&self, ticket: u64, wanted: u64) -> io::Result<u64> {
        let mut locked = self.lock()?;
        let Some(index) = locked.find(std::process::id(), ticket) else { return Ok(0) };
        let Some(entry) = locked.slots[index] else { return Ok(0) };
        locked.slots[index] = Some(Entry { touched: entry.bytes, ..entry });
        let free = if locked.head().is_some() { 0 } else { locked.unpromised() };
        let share = locked.fair_share(free, millis_since_boot());
        let bytes = wanted.min(share).min(entry.bytes + free).max(entry.bytes);
        locked.write(index, Some(Entry { bytes, touched: entry.bytes, ..entry }))?;
        Ok(bytes)
    }

    /// Says that of a promise `bytes` are kept, all of them touched.
    ///
    /// # Errors
    /// Of the file.
    pub fn settle(&self, ticket: u64, bytes: u64) -> io::Result<()> {
        let mut locked = self.lock()?;
        let Some(index) = locked.find(std::process::id(), ticket) else { return Ok(()) };
        let entry = locked.slots[index];
        locked.write(index, entry.map(|entry| Entry { bytes, touched: bytes, ..entry }))
    }

    /// Gives a promise or a place in the queue back.
    ///
    /// # Errors
    /// Of the file.
    pub fn give_back(&self, ticket: u64) -> io::Result<()> {
        let mut locked = self.lock()?;
        match locked.find(std::process::id(), ticket) {
            Some(index) => locked.write(index, None),
            None => Ok(()),
        }
    }

    /// Queues up for a promise to the command that this process will become; returns the ticket.
    ///
    /// # Errors
    /// Of the file.
    pub fn queue(&self) -> io::Result<u64> {
        let mut locked = self.lock()?;
        let ticket = next_ticket(&locked);
        locked.add(own_entry(ticket, 0, true))?;
        Ok(ticket)
    }

    /// Tries to be admitted: only the first in the queue is, so that a large demand is not
    /// starved by small ones.
    ///
    /// # Errors
    /// Of the file.
    pub fn admit(&self, ticket: u64, demand: &Demand) -> io::Result<Admission> {
        let pressed = pressed();
        let mut locked = self.lock()?;
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
            Some(index) => locked.write(index, Some(own_entry(ticket, bytes, true)))?,
            None => locked.add(own_entry(ticket, bytes, true))?,
        }
        Ok(Admission::Granted(bytes))
    }
}

fn millis_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unsigned_abs()
}

/// Greater than every ticket in use; those that have been given back may come again.
fn next_ticket(locked: &Locked<'_>) -> u64 {
    locked.entries().map(|entry| entry.ticket).max().unwrap_or(0) + 1
}

fn own_entry(ticket: u64, bytes: u64, is_command: bool) -> Entry {
    let pid = std::process::id();
    let started = start_time(pid).unwrap_or(0);
    Entry { pid, started, ticket, bytes, touched: 0, is_command }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open_at(&dir.path().join("grants")).unwrap();
        (dir, ledger)
    }

    #[test]
    fn a_promise_counts_until_it_is_given_back() {
        let (_dir, ledger) = ledger();
        let all = Demand::new(MIB, 1 << 50, MIB).unwrap();
        let (ticket, bytes) = ledger.take(&all, u64::MAX).unwrap().unwrap();
        assert!(bytes >= MIB);
        let as_much = Demand::new(bytes / 2, bytes, 1).unwrap();
        assert_eq!(
            ledger.take(&as_much, u64::MAX).unwrap(),
            None,
            "the same memory was promised twice"
        );
        ledger.give_back(ticket).unwrap();
        assert!(ledger.take(&as_much, u64::MAX).unwrap().is_some());
    }

    #[test]
    fn competing_processes_share() {
        let (_dir, ledger) = ledger();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let member = Entry {
            pid: other.id(),
            started: start_time(other.id()).unwrap(),
            ticket: MEMBER,
            bytes: 0,
            touched: millis_since_boot(),
            is_command: false,
        };
        ledger.lock().unwrap().add(member).unwrap();
        let all = Demand::new(MIB, 1 << 50, MIB).unwrap();
        let available = available().0;
        let (ticket, bytes) = ledger.take(&all, 0).unwrap().unwrap();
        assert_eq!(bytes, MIB);
        let bytes = ledger.extend(ticket, u64::MAX).unwrap();
        assert!((MIB..=available / 3 * 2).contains(&bytes), "{bytes} of {available} is no half");
        other.kill().unwrap();
        other.wait().unwrap();
        // As nothing was touched, the kernel does not know yet of the first part.
        let bytes = ledger.extend(ticket, u64::MAX).unwrap();
        assert!(bytes > available / 3 * 2, "the dead do not compete");
    }

    #[test]
    fn only_the_first_in_the_queue_is_admitted() {
        let (_dir, ledger) = ledger();
        let small = Demand::new(1, 1, 1).unwrap();
        let huge = Demand::new(1 << 60, 1 << 60, 1).unwrap();
        let (first, second) = (ledger.queue().unwrap(), ledger.queue().unwrap());
        assert!(matches!(ledger.admit(first, &huge).unwrap(), Admission::Wait(_)));
        assert!(matches!(ledger.admit(second, &small).unwrap(), Admission::Wait(_)));
        assert_eq!(ledger.take(&small, 0).unwrap(), None, "passed the queue");
        ledger.give_back(first).unwrap();
        assert_eq!(ledger.admit(second, &small).unwrap(), Admission::Granted(1));
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
        let locked = ledger.lock().unwrap();
        assert_eq!(locked.entries().count(), 0);
        assert_eq!(locked.slots.len(), 2);
    }

    #[test]
    fn slots_keep_what_is_written() {
        let entry = Entry { pid: 7, started: 1, ticket: 2, bytes: 3, touched: 4, is_command: true };
        assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
        assert_eq!(Entry::from_bytes(&[0; SLOT]), None);
        assert_eq!(Entry::from_bytes(&[]), None);
    }
}
