//! Whether others wait for a lock of a job, so that it must not be stopped now (MS Manners, section 3).
//!
//! The kernel lists locks of files, their waiters, and leases that an opener breaks (proc(5), `/proc/locks`). It
//! names the process that took a lock. A lock of flock(2) is often left to the processes that inherited its descriptor,
//! as flock(1) leaves it to a shell; then the members' descriptors tell which of them has it. A process that waits for
//! an open file description's lock (`F_OFD_SETLKW`) has no number in the list and is not counted; neither are locks in memory.

use std::fs;

use discnice_sys::procfs;
use rustix::process::Pid;

use discnice_processes::tree::Tree;

const LOCKS: &str = "/proc/locks";

/// One line of the kernel's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lock<'a> {
    /// `FLOCK`, `POSIX`, `OFDLCK`, `LEASE` or `DELEG`.
    kind: &'a str,
    state: &'a str,
    /// Zero where the kernel does not tell.
    process: u32,
    /// Device and inode.
    file: &'a str,
    waits: bool,
}

impl<'a> Lock<'a> {
    /// Reads a line, also as `/proc/PID/fdinfo` has it behind `lock:`.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1).peekable();
        let waits = words.next_if_eq(&"->").is_some();
        let (kind, state) = (words.next()?, words.next()?);
        let process = words.nth(1)?.parse().unwrap_or(0);
        Some(Self { kind, state, process, file: words.next()?, waits })
    }

    /// Returns true if an opener waits until this lease is given up.
    fn is_being_broken(&self) -> bool {
        matches!(self.kind, "LEASE" | "DELEG") && self.state == "BREAKING"
    }
}

//= ms-manners/3-priority-inversion
/// Returns true if a process outside the job waits for a lock of a file that the job holds.
pub fn is_awaited(tree: &Tree) -> bool {
    let list = fs::read_to_string(LOCKS).unwrap_or_default();
    let is_member =
        |process: u32| Pid::from_raw(process.cast_signed()).is_some_and(|pid| tree.contains(pid));
    let is_held = |lock: &Lock<'_>| is_member(lock.process) || has_inherited(tree, lock);
    wanted(&list, is_member).any(|lock| is_held(&lock))
}

/// Locks that processes wait for which are no members.
fn wanted(list: &str, is_member: impl Fn(u32) -> bool) -> impl Iterator<Item = Lock<'_>> {
    let mut held = None;
    list.lines().filter_map(Lock::parse).filter_map(move |lock| {
        if !lock.waits {
            held = Some(lock);
            return lock.is_being_broken().then_some(lock);
        }
        held.filter(|_| lock.process != 0 && !is_member(lock.process))
    })
}

/// Returns true if the process that took the lock has ended, and a member has the descriptor.
fn has_inherited(tree: &Tree, lock: &Lock<'_>) -> bool {
    if procfs::lives(lock.process) {
        return false;
    }
    let same = |line: &str| {
        let line = line.strip_prefix("lock:").and_then(Lock::parse);
        line.is_some_and(|own| (own.kind, own.file) == (lock.kind, lock.file))
    };
    tree.iter().any(|member| {
        let directory = fs::read_dir(format!("/proc/{}/fdinfo", member.id));
        let descriptors = directory.into_iter().flatten().flatten();
        let texts = descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        texts.into_iter().any(|text| text.lines().any(same))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
        1: FLOCK  ADVISORY  WRITE 10 08:01:5 0 EOF\n\
        1: -> FLOCK  ADVISORY  WRITE 20 08:01:5 0 EOF\n\
        1:  -> FLOCK  ADVISORY  READ 10 08:01:5 0 EOF\n\
        2: POSIX  ADVISORY  READ 11 08:01:6 0 EOF\n\
        3: OFDLCK ADVISORY  WRITE -1 08:01:7 0 EOF\n\
        3: -> OFDLCK ADVISORY  WRITE -1 08:01:7 0 EOF\n\
        4: LEASE  ACTIVE    READ 12 08:01:8 0 EOF\n\
        5: LEASE  BREAKING  READ 13 08:01:9 0 EOF\n\
        torn\n";

    fn wanted_of(members: &[u32]) -> Vec<u32> {
        wanted(LIST, |id| members.contains(&id)).map(|lock| lock.process).collect()
    }

    #[test]
    fn only_locks_with_foreign_waiters_count() {
        assert_eq!(wanted_of(&[10]), [10, 13]);
        assert_eq!(wanted_of(&[10, 20]), [13], "the job waits for itself");
        assert_eq!(wanted_of(&[]), [10, 10, 13]);
    }

    //= ms-manners/3-priority-inversion
    #[test]
    fn a_lock_is_the_inheritors_once_its_taker_has_ended() {
        use std::os::unix::fs::MetadataExt;
        use std::process::Command;

        use discnice_processes::tree::Process;

        let scene = tempfile::tempdir().unwrap();
        let file = fs::File::create(scene.path().join("lock")).unwrap();
        // flock(1) locks what it inherits as its standard output, and ends.
        let taker =
            Command::new("flock").args(["-x", "1"]).stdout(file.try_clone().unwrap()).status();
        assert!(taker.unwrap().success());
        let list = fs::read_to_string(LOCKS).unwrap();
        let end = format!(":{}", file.metadata().unwrap().ino());
        let lock = list.lines().filter_map(Lock::parse).find(|lock| lock.file.ends_with(&end));
        let lock = lock.expect("flock(1) has taken it");
        let own = Process::find(std::process::id()).unwrap();
        assert!(has_inherited(&Tree::new(&[own]), &lock));
        assert!(!has_inherited(&Tree::default(), &lock));
    }
}
