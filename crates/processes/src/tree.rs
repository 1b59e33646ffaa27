//! Which processes belong to a job: some roots and all their descendants.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use discnice_sys::procfs::{self, Found, Stat};
use rustix::process::Pid;

/// A process that cannot be confused with a later one of the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its PID.
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// How often, and after which time, a process is looked at again that executes a program: nearly all have closed their files
/// by then.
const TRIES: u32 = 100;
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Returns true if a process can be looked at; waits a moment for one that just begins a program ([`Found::Executing`]).
pub fn can_be_looked_at(id: u32) -> bool {
    for _ in 0..TRIES {
        if !procfs::is_executing(id) {
            return true;
        }
        std::thread::sleep(TRY_AGAIN);
    }
    false
}

/// The length of a process in messages and records.
pub const PROCESS: usize = 12;

impl Process {
    /// What stands for it in messages and records: PID and start time.
    #[must_use]
    pub fn to_bytes(self) -> [u8; PROCESS] {
        let mut bytes = [0; PROCESS];
        bytes[..4].copy_from_slice(&self.id().to_ne_bytes());
        bytes[4..].copy_from_slice(&self.started.to_ne_bytes());
        bytes
    }

    /// The process that stands there; `None` for zeroes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; PROCESS]) -> Option<Self> {
        let pid = i32::from_ne_bytes(bytes[..4].try_into().ok()?);
        let started = u64::from_ne_bytes(bytes[4..].try_into().ok()?);
        Some(Self { pid: Pid::from_raw(pid).filter(|_| pid > 0)?, started })
    }

    /// The process that has this PID now; `None` when there is none, or a zombie. Waits a moment for one that just begins a
    /// program, and finds it if it can be looked at then ([`Found::Executing`]).
    #[must_use]
    pub fn find(pid: u32) -> Option<Self> {
        can_be_looked_at(pid);
        Self::find_now(pid)
    }

    /// Finds the process that has this PID as [`Self::find`] does, if it can be looked at now.
    #[must_use]
    pub fn find_now(pid: u32) -> Option<Self> {
        Some(Self::of(&living(pid)?))
    }

    /// The process that this line tells of.
    #[must_use]
    pub fn of(stat: &Stat) -> Self {
        // A PID fits 22 bits, and no process has PID 0.
        let pid = Pid::from_raw(stat.id as i32).unwrap_or(Pid::INIT);
        Self { pid, started: stat.started }
    }

    /// What `/proc` says of it now; `None` when it has ended.
    #[must_use]
    pub fn stat(self) -> Option<Stat> {
        self.stat_after(Stat::of_executing(self.id(), self.started))
    }

    /// What `/proc` says of it now, or what it said `before` while it cannot be looked at; `None` when it has ended.
    fn stat_after(self, before: Stat) -> Option<Stat> {
        match procfs::find(self.id()) {
            Found::Process(now) => (!now.has_ended() && now.started == self.started).then_some(now),
            Found::Executing => Some(before),
            Found::Nothing => None,
        }
    }

    /// The PID as a number.
    #[must_use]
    pub fn id(self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }
}

fn living(pid: u32) -> Option<Stat> {
    procfs::stat(pid).filter(|stat| !stat.has_ended())
}

/// The living processes of a job. Once seen they stay members, also when their parent ends.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    members: HashMap<Process, Stat>,
    left_out: Option<u32>,
}

impl Tree {
    /// A job with these roots.
    #[must_use]
    pub fn new(roots: &[Process]) -> Self {
        Self::without(roots, None)
    }

    /// Creates a job with these roots, excluding `left_out` and its descendants: a regulator may
    /// become a child of its own job, if a process of the job inherits the machine's orphans (as
    /// the first one of a container does).
    #[must_use]
    pub fn without(roots: &[Process], left_out: Option<u32>) -> Self {
        let known = roots.iter().filter_map(|root| Some((*root, root.stat()?)));
        let mut tree = Self { members: known.collect(), left_out };
        tree.refresh();
        tree
    }

    /// Looks for new descendants and forgets the ended.
    pub fn refresh(&mut self) {
        let known = std::mem::take(&mut self.members);
        let unseen: HashMap<u32, &Stat> = known.values().map(|stat| (stat.id, stat)).collect();
        let look = |id: u32| match procfs::find(id) {
            Found::Process(stat) => Some(stat).filter(|stat| !stat.has_ended()),
            Found::Executing => unseen.get(&id).copied().copied(),
            Found::Nothing => None,
        };
        let all: Vec<Stat> = every_process().filter_map(look).collect();
        let alive = all.iter().filter(|s| known.contains_key(&Process::of(s)));
        self.members = alive.map(|s| (Process::of(s), *s)).collect();
        let mut ids: HashSet<u32> = self.members.keys().map(|member| member.id()).collect();
        loop {
            let is_child = |s: &&Stat| {
                !ids.contains(&s.id) && ids.contains(&s.parent) && self.left_out != Some(s.id)
            };
            let new: Vec<Stat> = all.iter().filter(is_child).copied().collect();
            if new.is_empty() {
                return;
            }
            ids.extend(new.iter().map(|s| s.id));
            self.members.extend(new.into_iter().map(|s| (Process::of(&s), s)));
        }
    }

    /// Reads the known members again, drops those that have ended, and takes in children of the
    /// members' first threads, where most children come from. Without them, a shell that runs
    /// commands of less than a second seems to do nothing until [`Self::refresh`] reads all
    /// processes.
    pub fn update(&mut self) {
        self.members.retain(|process, known| match process.stat_after(*known) {
            Some(now) => {
                *known = now;
                true
            }
            None => false,
        });
        let mut parents: Vec<u32> = self.members.keys().map(|member| member.id()).collect();
        while let Some(parent) = parents.pop() {
            procfs::children(parent, |child| parents.extend(self.adopt(child)));
        }
    }

    /// Takes in a member's child, unless it is known; its id, if not.
    fn adopt(&mut self, child: u32) -> Option<u32> {
        let stat = living(child).filter(|stat| self.left_out != Some(stat.id))?;
        self.members.insert(Process::of(&stat), stat).is_none().then_some(child)
    }

    /// The members of which no member is the parent: the first ones, or what they have left.
    #[must_use]
    pub fn first(&self) -> Vec<Process> {
        let parents: HashSet<u32> = self.members.keys().map(|member| member.id()).collect();
        let first = self.members.values().filter(|stat| !parents.contains(&stat.parent));
        first.map(Process::of).collect()
    }

    /// Returns true if all members have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What was last read of each member.
    pub fn iter(&self) -> impl Iterator<Item = &Stat> {
        self.members.values()
    }

    /// Returns true if `pid` belongs to the job.
    #[must_use]
    pub fn contains(&self, pid: Pid) -> bool {
        self.members.keys().any(|member| member.pid == pid)
    }
}

/// The ids of all processes that exist now.
pub fn every_process() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn grandchildren_belong_and_stay_when_orphaned() {
        let mut shell = Command::new("sh")
            .args(["-c", "(sleep 100 & sleep 100 & wait) & wait"])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let root = Process::find(shell.id()).unwrap();
        let mut tree = Tree::new(&[root]);
        assert_eq!(tree.iter().count(), 4, "{tree:?}");
        assert!(!tree.contains(rustix::process::getpid()));
        assert_eq!(tree.first(), [root]);
        shell.kill().unwrap();
        shell.wait().unwrap();
        tree.refresh();
        assert_eq!(tree.iter().count(), 3, "{tree:?}");
        let left = tree.first();
        assert_eq!((left.len(), Tree::new(&left).iter().count()), (1, 3));
        for member in tree.iter().map(Process::of) {
            rustix::process::kill_process(member.pid, rustix::process::Signal::KILL).unwrap();
        }
    }

    #[test]
    fn a_reused_pid_is_not_the_job() {
        let own = Process::find(std::process::id()).unwrap();
        let earlier = Process { started: own.started - 1, ..own };
        assert!(Tree::new(&[earlier]).is_empty());
        assert!(!Tree::new(&[own]).is_empty());
    }

    #[test]
    fn a_process_that_is_left_out_takes_its_children_with_it() {
        let mut shell = Command::new("sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let own = Process::find(std::process::id()).unwrap();
        let all = Tree::new(&[own]);
        let rest = Tree::without(&[own], Some(shell.id()));
        assert!(all.contains(Pid::from_child(&shell)) && !rest.contains(Pid::from_child(&shell)));
        let sleeping = all.iter().find(|stat| stat.parent == shell.id()).unwrap();
        assert!(rest.iter().all(|stat| stat.id != sleeping.id));
        let sleeping = Process::of(sleeping).pid;
        rustix::process::kill_process(sleeping, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
