//! Which processes belong to a job: some roots and all their descendants.

use std::collections::HashMap;
use std::fs;

use rustix::process::Pid;

/// A process that cannot be confused with a later one of the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its PID.
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// What `/proc/PID/stat` says (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Which process.
    pub process: Process,
    /// PID of its parent; zero for the first process.
    pub parent: i32,
    /// One letter: `R`, `S`, `D`, `T` (stopped), `Z` (zombie) and others.
    pub state: char,
    /// Processor time used by it, in clock ticks of 10 ms.
    pub cpu_ticks: u64,
    /// Page faults that needed the disk, and those that did not.
    pub faults: u64,
}

/// Reads one process; `None` when it is gone or a zombie.
#[must_use]
pub fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The second field is the name in parentheses and may itself contain any character.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    let state = fields.first()?.chars().next()?;
    let stat = Stat {
        process: Process { pid, started: number(19)? },
        parent: fields.get(1)?.parse().ok()?,
        state,
        cpu_ticks: number(11)? + number(12)?,
        faults: number(7)? + number(9)?,
    };
    (!matches!(state, 'Z' | 'X')).then_some(stat)
}

/// The living processes of a job. Once seen they stay members, also when their parent ends.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    members: HashMap<Process, Stat>,
}

impl Tree {
    /// A job with these roots.
    #[must_use]
    pub fn new(roots: &[Process]) -> Self {
        let known = roots.iter().filter_map(|root| Some((*root, stat(root.pid)?)));
        let mut tree = Self { members: known.filter(|(root, s)| s.process == *root).collect() };
        tree.refresh();
        tree
    }

    /// Looks for new descendants and forgets the ended.
    pub fn refresh(&mut self) {
        let all: Vec<Stat> = every_process().filter_map(stat).collect();
        let known = std::mem::take(&mut self.members);
        let alive = all.iter().filter(|s| known.contains_key(&s.process));
        self.members = alive.map(|s| (s.process, *s)).collect();
        loop {
            let is_child = |s: &&Stat| {
                !self.members.contains_key(&s.process)
                    && self.members.keys().any(|m| m.pid.as_raw_nonzero().get() == s.parent)
            };
            let new: Vec<Stat> = all.iter().filter(is_child).copied().collect();
            if new.is_empty() {
                return;
            }
            self.members.extend(new.into_iter().map(|s| (s.process, s)));
        }
    }

    /// Reads the known members again, without looking for new ones; forgets the ended.
    pub fn update(&mut self) {
        self.members.retain(|process, known| match stat(process.pid) {
            Some(now) if now.process == *process => {
                *known = now;
                true
            }
            _ => false,
        });
    }

    /// Whether all have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What was last read of each member.
    pub fn iter(&self) -> impl Iterator<Item = &Stat> {
        self.members.values()
    }

    /// Whether `pid` belongs to the job.
    #[must_use]
    pub fn contains(&self, pid: Pid) -> bool {
        self.members.keys().any(|member| member.pid == pid)
    }
}

fn every_process() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
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
        let root = stat(Pid::from_child(&shell)).unwrap().process;
        let mut tree = Tree::new(&[root]);
        assert_eq!(tree.iter().count(), 4, "{tree:?}");
        assert!(!tree.contains(rustix::process::getpid()));
        shell.kill().unwrap();
        shell.wait().unwrap();
        tree.refresh();
        assert_eq!(tree.iter().count(), 3, "{tree:?}");
        for member in tree.iter() {
            rustix::process::kill_process(member.process.pid, rustix::process::Signal::KILL)
                .unwrap();
        }
    }

    #[test]
    fn a_reused_pid_is_not_the_job() {
        let own = stat(rustix::process::getpid()).unwrap().process;
        let earlier = Process { started: own.started - 1, ..own };
        assert!(Tree::new(&[earlier]).is_empty());
        assert!(!Tree::new(&[own]).is_empty());
    }
}
