//! The process that thaws what we froze by cgroups if we are killed: a frozen cgroup stays frozen
//! after our death.
//!
//! It is told of each cgroup before a process is moved there, and when it is gone. When our end of the socket is closed, in whatever
//! way we end, it thaws all that it knows, moves their processes back and removes them. What could not be removed at once, as a
//! process of it was just ending, is left to it, too.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use discnice_processes::fork;
use discnice_processes::hold_record::{HoldKind, HoldRecord};
use discnice_processes::tree::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cgroup::{self, Home};
use crate::helper_process;
use crate::tuning;

const MADE: u8 = b'M';
const GONE: u8 = b'G';
const LEFT: u8 = b'L';
/// One of these and a path.
const MESSAGE: usize = 1 + libc::PATH_MAX as usize;

/// The process that all holds by cgroups share; started when the first is needed. It ends with us.
#[derive(Debug, Clone, Default)]
pub struct Thawer(Rc<RefCell<Told>>);

/// What we have of it.
#[derive(Debug, Default)]
struct Told {
    socket: Option<File>,
    /// What it would thaw, to tell its successor.
    made: HashSet<PathBuf>,
    /// Names what it would thaw, in case that it is killed together with us.
    record: Option<HoldRecord>,
}

impl Thawer {
    /// Tells it of a cgroup that is about to be made.
    ///
    /// # Errors
    /// It cannot be told, or none can be started: nothing may be frozen then.
    pub(super) fn expect(&self, cgroup: &Path) -> io::Result<()> {
        let told = &mut *self.0.borrow_mut();
        told.make_sure()?;
        told.tell(MADE, cgroup)?;
        told.made.insert(cgroup.into());
        if let (Some(record), Some(process)) = (&mut told.record, process_of(cgroup)) {
            record.add(process);
        }
        Ok(())
    }

    /// Starts it now, as it cannot be once this process has threads.
    pub(crate) fn prepare(&self) {
        let _ = self.check();
    }

    /// Makes sure that there is one; call before something is frozen. Costs one poll(2).
    ///
    /// # Errors
    /// As [`Self::expect`].
    pub(super) fn check(&self) -> io::Result<()> {
        self.0.borrow_mut().make_sure()
    }

    /// The cgroup is gone.
    pub(super) fn forget(&self, cgroup: &Path) {
        self.0.borrow_mut().strike(GONE, cgroup);
    }

    /// The cgroup is to be removed as soon as that is possible.
    pub(super) fn leave(&self, cgroup: &Path) {
        self.0.borrow_mut().strike(LEFT, cgroup);
    }
}

impl Told {
    fn make_sure(&mut self) -> io::Result<()> {
        if self.socket.as_ref().is_some_and(lives) {
            return Ok(());
        }
        self.socket = None;
        self.socket = Some(helper_process::start(serve)?);
        self.record = self.record.take().or_else(|| HoldRecord::begin(HoldKind::Frozen));
        let told = self.made.iter().try_for_each(|cgroup| self.tell(MADE, cgroup));
        told.inspect_err(|_| self.socket = None)
    }

    fn tell(&self, what: u8, cgroup: &Path) -> io::Result<()> {
        let message = [&[what], cgroup.as_os_str().as_bytes()].concat();
        let mut socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        if message.len() > MESSAGE {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        socket.write_all(&message)
    }

    fn strike(&mut self, what: u8, cgroup: &Path) {
        self.made.remove(cgroup);
        if let (Some(record), Some(process)) = (&mut self.record, process_of(cgroup)) {
            record.remove(process);
        }
        // A helper that is not told finds nothing there, or removes it when we end.
        let _ = self.tell(what, cgroup);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // What is held is let go of before, and what cannot be yet is known to the helper.
        if let Some(record) = &self.record {
            record.end();
        }
    }
}

/// The process that a cgroup is for.
fn process_of(cgroup: &Path) -> Option<Process> {
    cgroup.file_name().and_then(cgroup::process_of)
}

/// Returns true if the other end is open.
fn lives(socket: &File) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
}

/// The helper's whole life.
fn serve(mut socket: File) {
    fork::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]);
    let _ = rustix::thread::set_name(c"discnice-thaw");
    let mut known = HashSet::new();
    let mut left = HashMap::new();
    let mut message = vec![0; MESSAGE];
    let wait =
        Timespec { tv_sec: 0, tv_nsec: tuning::holding::CGROUP_REMOVAL_WAIT.subsec_nanos().into() };
    loop {
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&wait).filter(|_| !left.is_empty()));
        match socket.read(&mut message) {
            Ok(0) => break,
            Ok(length) => follow(message.get(..length).unwrap_or_default(), &mut known, &mut left),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => try_again(&mut left),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    known.iter().for_each(|cgroup| drop(thaw(cgroup)));
    left.extend(known.into_iter().map(|cgroup| (cgroup, tuning::holding::CGROUP_REMOVALS)));
    try_again(&mut left);
    while !left.is_empty() {
        std::thread::sleep(tuning::holding::CGROUP_REMOVAL_WAIT);
        try_again(&mut left);
    }
}

fn follow(message: &[u8], known: &mut HashSet<PathBuf>, left: &mut HashMap<PathBuf, u32>) {
    let Some((what, path)) = message.split_first() else { return };
    let path = PathBuf::from(OsStr::from_bytes(path));
    if *what == MADE {
        left.remove(&path);
        known.insert(path);
        return;
    }
    known.remove(&path);
    if *what == LEFT {
        left.insert(path, tuning::holding::CGROUP_REMOVALS);
    }
}

/// Removes what can be removed; what cannot after many tries stays as it is: thawed.
fn try_again(left: &mut HashMap<PathBuf, u32>) {
    left.retain(|cgroup, tries| {
        *tries -= 1;
        tidy(cgroup).is_err() && *tries > 0
    });
}

fn tidy(cgroup: &Path) -> io::Result<()> {
    let (home, name) = split(cgroup)?;
    Home::open(home)?.tidy(name)
}

fn thaw(cgroup: &Path) -> io::Result<()> {
    let (home, name) = split(cgroup)?;
    Home::open(home)?.thaw(name)
}

fn split(cgroup: &Path) -> io::Result<(&Path, &str)> {
    let name = cgroup.file_name().and_then(OsStr::to_str);
    cgroup.parent().zip(name).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_known_until_it_is_gone() {
        let (mut known, mut left) = (HashSet::new(), HashMap::new());
        let path = PathBuf::from("/nowhere/discnice-1-1");
        follow(b"M/nowhere/discnice-1-1", &mut known, &mut left);
        assert!(known.contains(&path));
        follow(b"L/nowhere/discnice-1-1", &mut known, &mut left);
        assert!(known.is_empty() && left.contains_key(&path));
        follow(b"M/nowhere/discnice-1-1", &mut known, &mut left);
        follow(b"G/nowhere/discnice-1-1", &mut known, &mut left);
        follow(b"", &mut known, &mut left);
        assert!(known.is_empty() && left.is_empty());
    }

    #[test]
    fn without_it_nothing_is_expected() {
        // The test harness has several threads, so none can be started.
        let thawer = Thawer::default();
        assert!(thawer.expect(Path::new("/nowhere/discnice-1-1")).is_err());
        assert!(thawer.check().is_err() && thawer.0.borrow().made.is_empty());
    }
}
