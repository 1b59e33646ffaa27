//! A record of what is held, for the case that all are killed at once that would let go of it: the next process of this
//! user's that looks at the records does.
//!
//! A record is a file of the user's private directory, locked by all processes that could let go of what stands in it: the lock is
//! inherited with the descriptor, and the kernel takes it from the dead. flock(2)

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use discnice_paths::Private;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::tree::{PROCESS, Process};

/// How processes are held, by which records are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldKind {
    /// By a stop signal.
    Stopped,
    /// In a freezer cgroup.
    Frozen,
}

impl HoldKind {
    /// What the names of records begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Stopped => "stopped-",
            Self::Frozen => "frozen-",
        }
    }
}

/// Records that one process may keep of a kind.
const RECORDS: u32 = 8;
/// Entries that are read of a record: as many as there can be processes.
const ENTRIES: u64 = 1 << 22;

/// A record that this process keeps, and those that it forks.
#[derive(Debug)]
pub struct HoldRecord {
    directory: Private,
    name: String,
    file: File,
    entries: Vec<Option<Process>>,
}

impl HoldRecord {
    /// Begins one; `None` where there is no room for it.
    #[must_use]
    pub fn begin(kind: HoldKind) -> Option<Self> {
        let directory = discnice_paths::runtime().ok()?;
        let own = std::process::id();
        let mut names = (0..RECORDS).map(|number| format!("{}{own}-{number}", kind.prefix()));
        let (name, file) = names.find_map(|name| {
            let file = open(&directory, &name, OFlags::CREATE)?;
            // What a process of the same PID left is not ours to overwrite.
            (file.metadata().ok()?.len() == 0).then_some((name, file))
        })?;
        Some(Self { directory, name, file, entries: Vec::new() })
    }

    /// Returns the name of its file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Notes that a process is about to be held.
    pub fn add(&mut self, process: Process) {
        let free = self.entries.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.set(place, Some(process));
    }

    /// Notes that a process was let go.
    pub fn remove(&mut self, process: Process) {
        if let Some(place) = self.entries.iter().position(|entry| *entry == Some(process)) {
            self.set(place, None);
        }
    }

    fn set(&mut self, place: usize, process: Option<Process>) {
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = process;
            let bytes = process.map_or([0; PROCESS], Process::to_bytes);
            // Without room only those know that hold it.
            let _ = self.file.write_all_at(&bytes, (place * PROCESS) as u64);
        }
    }

    /// Ends it: nothing is held any more.
    pub fn end(&self) {
        let _ = self.directory.remove(&self.name);
    }
}

/// Calls `let_go`, with the record's name, for each process that was left held by processes of this user's that were killed
/// together with their helpers, and ends their records.
pub fn settle_abandoned(kind: HoldKind, mut let_go: impl FnMut(Process, &str)) {
    let Ok(directory) = discnice_paths::runtime() else { return };
    for name in names(&directory, kind) {
        if let Some(file) = open(&directory, &name, OFlags::empty()) {
            entries(&file).for_each(|process| let_go(process, &name));
            // Another process may do the same at this moment.
            let _ = directory.remove(&name);
        }
    }
}

/// Whether a record other than our `own` lists a process.
pub(crate) fn others_list(kind: HoldKind, process: Process, own: Option<&str>) -> bool {
    let Ok(directory) = discnice_paths::runtime() else { return false };
    names(&directory, kind)
        .filter(|name| own != Some(name))
        .filter_map(|name| directory.open(&name, OFlags::RDONLY).ok())
        .any(|file| entries(&file).any(|entry| entry == process))
}

/// The names of all records of a kind.
fn names(directory: &Private, kind: HoldKind) -> impl Iterator<Item = String> {
    let all = directory.names().unwrap_or_default().into_iter();
    all.filter_map(|name| String::from_utf8(name).ok())
        .filter(move |name| name.starts_with(kind.prefix()))
}

/// Opens and locks a record; `None` while others could let go of what stands in it.
fn open(directory: &Private, name: &str, flags: OFlags) -> Option<File> {
    let file = directory.open(name, OFlags::RDWR | flags).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// What stands in a record.
fn entries(file: &File) -> impl Iterator<Item = Process> {
    let read = |place| {
        let mut bytes = [0; PROCESS];
        match file.read_exact_at(&mut bytes, place * PROCESS as u64) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            // What cannot be read is left out.
            Err(_) => Some(None),
            Ok(()) => Some(Process::from_bytes(bytes)),
        }
    };
    (0..ENTRIES).map_while(read).flatten()
}
