//! The kernel's account of the job's processes.

use std::collections::HashMap;
use std::io;

use discnice_processes::tree::{Process, Tree};
use discnice_sys::procfs::{self, Stat};

use crate::control::metric::source::Source;

/// The number of the account that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Cpu,
    Bytes,
    Read,
    Written,
    Operations,
    Faults,
}

impl What {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "cpu" => Self::Cpu,
            "bytes" => Self::Bytes,
            "read" => Self::Read,
            "written" => Self::Written,
            "operations" => Self::Operations,
            "faults" => Self::Faults,
            _ => return None,
        })
    }

    fn of(self, stat: &Stat) -> Option<f64> {
        match self {
            Self::Cpu => Some(stat.cpu_ticks as f64 / f64::from(procfs::TICKS)),
            Self::Faults => Some(stat.faults as f64),
            Self::Bytes => io(stat, |io| io.characters[0] + io.characters[1]),
            Self::Read => io(stat, |io| io.bytes[0]),
            Self::Written => io(stat, |io| io.bytes[1]),
            Self::Operations => io(stat, |io| io.calls[0] + io.calls[1]),
        }
    }
}

fn io(stat: &Stat, field: impl Fn(procfs::Io) -> u64) -> Option<f64> {
    procfs::io(stat.id).map(|io| field(io) as f64)
}

/// Sums what all processes of the job did, also those that have ended.
///
/// The kernel adds what a child did to its parent's account when the parent reaps it, so the sum
/// over all that are not reaped lacks only those that no process of the job reaped. Their share is kept aside: a
/// sum that has become smaller lost just that.
pub(crate) struct Account {
    what: What,
    /// What each process had done at the last look.
    known: HashMap<Process, f64>,
    last: f64,
    lost: f64,
}

impl Account {
    pub(crate) fn new(what: What) -> Self {
        Self { what, known: HashMap::new(), last: 0.0, lost: 0.0 }
    }

    /// What a process did, or had done at the last look while it executes a program and cannot be asked.
    fn of(&self, stat: &Stat) -> Option<f64> {
        let known = || self.known.get(&Process::of(stat)).copied();
        let known = || procfs::is_executing(stat.id).then(known)?;
        self.what.of(stat).or_else(known)
    }
}

/// Returns true if a process has ended, and its parent has not waited for it.
fn is_unreaped(process: Process) -> bool {
    procfs::stat(process.id())
        .is_some_and(|stat| stat.has_ended() && stat.started == process.started)
}

impl Source for Account {
    //= ms-manners/11-account
    fn read(&mut self, tree: &Tree) -> io::Result<f64> {
        let read = |stat| Some((Process::of(stat), self.of(stat)?));
        let mut now: HashMap<Process, f64> = tree.iter().filter_map(read).collect();
        if now.is_empty() && !tree.is_empty() {
            self.known.clear();
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        // What these did, a parent that waits late gets late.
        let unreaped = self.known.iter().filter(|(process, _)| is_unreaped(**process));
        unreaped.for_each(|(process, done)| _ = now.entry(*process).or_insert(*done));
        self.known = now;
        let sum = self.known.values().sum::<f64>();
        self.lost += (self.last - sum).max(0.0);
        self.last = sum;
        Ok(sum + self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discnice_processes::tree::Process;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

    /// A shell that does what it is told, line by line, and answers each with a line; ended when dropped.
    struct Shell {
        child: Child,
        orders: ChildStdin,
        answers: BufReader<ChildStdout>,
    }

    impl Shell {
        fn start(program: &str, folder: &std::path::Path) -> Self {
            let mut child = Command::new(program)
                .args(["-c", "while read -r line; do eval \"$line\"; echo; done"])
                .current_dir(folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let orders = child.stdin.take().unwrap();
            let answers = BufReader::new(child.stdout.take().unwrap());
            Self { child, orders, answers }
        }

        fn obey(&mut self, order: &str) {
            writeln!(self.orders, "{order}").unwrap();
            self.answers.read_line(&mut String::new()).unwrap();
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    //= ms-manners/3-metric-needed
    #[test]
    fn children_count_once_whether_waited_for_or_not() {
        let scene = tempfile::tempdir().unwrap();
        let mut shell = Shell::start("sh", scene.path());
        let id = shell.child.id();
        let mut tree = Tree::new(&[Process::find(id).unwrap()]);
        let mut bytes = Account::new(What::Bytes);
        let mut after = |order: &str| {
            shell.obey(order);
            tree.refresh();
            bytes.read(&tree).unwrap()
        };
        let copy = "dd if=/dev/zero of=/dev/null bs=1M count=20 2>/dev/null";
        let moved = 2.0 * 20.0 * 1048576.0;
        let before = after(":");
        // Born, ended and waited for between two looks.
        let waited = after(copy);
        assert!((waited - before - moved).abs() < 1e6, "{before} {waited}");
        // Seen alive, then waited for.
        let seen = after(&format!("{copy}; sleep 0.3 & wait"));
        assert!((seen - waited - moved).abs() < 1e6, "{waited} {seen}");
        // Seen alive with a child of its own, then killed, and the child inherited by another
        // process.
        let alive = after(&format!("(sh -c '{copy}; sleep 100' & wait) & sleep 0.5"));
        assert!((alive - seen - moved).abs() < 1e6, "{seen} {alive}");
        let orphaned = after("kill -9 $!; sleep 0.1");
        assert!((orphaned - alive).abs() < 1e6, "{alive} {orphaned}");
        for member in tree.iter().filter(|member| member.id != id) {
            let _ = Command::new("kill").args(["-9", &member.id.to_string()]).status();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        tree.refresh();
        assert!(bytes.read(&tree).unwrap() >= orphaned);
    }

    #[test]
    fn a_child_that_is_waited_for_late_counts_once() {
        // dash waits for a child in the background when it is told to, not when that ends.
        let scene = tempfile::tempdir().unwrap();
        let mut shell = Shell::start("dash", scene.path());
        let mut tree = Tree::new(&[Process::find(shell.child.id()).unwrap()]);
        let mut bytes = Account::new(What::Bytes);
        let mut after = |order: &str| {
            shell.obey(order);
            std::thread::sleep(std::time::Duration::from_millis(20));
            tree.refresh();
            (bytes.read(&tree).unwrap(), tree.iter().count())
        };
        let (before, _) = after(":");
        let copy = "dd if=/dev/zero of=/dev/null bs=1M count=20 2>/dev/null";
        let stay = "until test -e end; do sleep 0.1; done";
        after(&format!("({copy}; : > copied; {stay}) >/dev/null &"));
        let mut find = |sign: &dyn Fn(usize) -> bool| {
            (0..1000).map(|_| after(":")).find(|(_, members)| sign(*members)).unwrap().0
        };
        let copied = scene.path().join("copied");
        find(&|members| members > 1 && copied.exists());
        let alive = find(&|members| members > 1);
        assert!((alive - before - 40.0 * 1048576.0).abs() < 2e6, "{before} {alive}");
        std::fs::write(scene.path().join("end"), "").unwrap();
        let ended = find(&|members| members == 1);
        let (waited, _) = after("wait");
        let grown = [ended - alive, waited - ended];
        assert!(grown.iter().all(|grown| grown.abs() < 2e6), "{alive} {ended} {waited}");
    }
}
