//! Stopping a whole job, for regulation by progress.

use std::collections::HashMap;
use std::io;

use discnice_ledger::outside::Mechanism;
use discnice_processes::Stopper;
use discnice_processes::tree::{Process, Tree};
use discnice_sys::deadline;

use super::{Grip, Guards, Hold, Refused, best, next_best};
use crate::tuning;

/// A job held by ptrace(2), which neither its parent nor a shell sees and which ends with us; by
/// cgroups or signals where that is not permitted.
#[derive(Debug, Default)]
pub struct HeldJob {
    held: HashMap<Process, (Box<dyn Hold>, Grip)>,
    /// Holds by cgroups between two stops: the processes stay in theirs.
    kept: HashMap<Process, Box<dyn Hold>>,
    guards: Guards,
    calls: u32,
}

impl HeldJob {
    /// Holds what is awake, and the sleepers too if `all`; returns true if a process is new.
    fn press(&mut self, tree: &Tree, all: bool) -> io::Result<bool> {
        let mut new = false;
        for process in tree.iter().map(Process::of) {
            let known = self.held.contains_key(&process);
            new |= !known;
            let (hold, grip) = self.held.entry(process).or_insert_with(|| {
                (self.kept.remove(&process).unwrap_or_else(|| best(process)), Grip::Loose)
            });
            *grip = pressed_somehow(process, hold, all, &self.guards).map_err(error)?;
        }
        Ok(new)
    }

    /// As [`Self::press`]; after an error nothing is held.
    fn press_or_resume(&mut self, tree: &Tree, all: bool) -> io::Result<bool> {
        self.press(tree, all).inspect_err(|_| self.resume())
    }
}

/// Presses, by another mechanism if this one is forbidden.
fn pressed_somehow(
    process: Process,
    hold: &mut Box<dyn Hold>,
    all: bool,
    guards: &Guards,
) -> Result<Grip, Refused> {
    loop {
        match if all { hold.press_all() } else { hold.press() } {
            Err(Refused::Forbidden) => {
                *hold = next_best(process, &**hold, guards).ok_or(Refused::Forbidden)?;
            }
            // A debugger has it, and controls what it does.
            Err(Refused::Traced) => return Ok(Grip::Firm),
            other => return other,
        }
    }
}

fn error(refused: Refused) -> io::Error {
    let why = match refused {
        Refused::Traced => "another program traces it",
        Refused::Forbidden => "neither ptrace(2) nor a cgroup nor a signal is permitted",
        Refused::Foreground => {
            "it is in the foreground of a terminal, and this system does not permit ptrace(2)"
        }
    };
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

impl Stopper for HeldJob {
    fn stop(&mut self, tree: &mut Tree) -> io::Result<()> {
        self.calls = 0;
        deadline::arm();
        self.kept.retain(|process, _| process.stat().is_some());
        for _ in 0..tuning::holding::JOB_ROUNDS {
            let new = self.press_or_resume(tree, false)?;
            if !new {
                return Ok(());
            }
            std::thread::sleep(tuning::holding::JOB_ROUND);
            tree.refresh();
        }
        self.resume();
        Err(io::Error::other("the job starts processes faster than they can be stopped"))
    }

    fn keep(&mut self, tree: &mut Tree) -> io::Result<()> {
        self.calls += 1;
        deadline::renew();
        let seldom = self.calls.is_multiple_of(tuning::holding::JOB_LOOKS);
        if seldom || self.calls == tuning::holding::JOB_SLEEPERS {
            tree.refresh();
        }
        let loose = self.held.values().any(|(_, grip)| *grip == Grip::Loose);
        if seldom || loose {
            self.press_or_resume(tree, self.calls >= tuning::holding::JOB_SLEEPERS)?;
        }
        // A process that is killed while it is held ends only when its tracer takes note.
        self.held.values_mut().for_each(|(hold, _)| hold.tend());
        Ok(())
    }

    fn resume(&mut self) {
        // A thread that waits for a disk can be let go only after that; no other thread waits for
        // it.
        while !self.held.is_empty() {
            for (process, (hold, _)) in self.held.extract_if(|_, (hold, _)| hold.release()) {
                if hold.mechanism() == Mechanism::CgroupFreezer {
                    self.kept.insert(process, hold);
                }
            }
            if !self.held.is_empty() {
                deadline::renew();
                std::thread::sleep(tuning::holding::JOB_ROUND);
            }
        }
        deadline::disarm();
    }
}

impl Drop for HeldJob {
    fn drop(&mut self) {
        self.resume();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::time::Duration;

    fn start(script: &str) -> (Child, Tree) {
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let tree = Tree::new(&[Process::find(child.id()).unwrap()]);
        (child, tree)
    }

    fn ticks(tree: &mut Tree) -> u64 {
        tree.refresh();
        tree.iter().map(|member| member.cpu_ticks).sum()
    }

    fn keep_for(job: &mut HeldJob, tree: &mut Tree, millis: u64) {
        for _ in 0..millis / 40 {
            std::thread::sleep(Duration::from_millis(40));
            job.keep(tree).unwrap();
        }
    }

    fn end(mut child: Child, tree: &mut Tree) {
        tree.refresh();
        for member in tree.iter().map(Process::of) {
            let _ = rustix::process::kill_process(member.pid, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_tree_stands_and_goes_on() {
        let (child, mut tree) = start("while :; do :; done & while :; do :; done");
        let mut job = HeldJob::default();
        job.stop(&mut tree).unwrap();
        keep_for(&mut job, &mut tree, 240);
        let before = ticks(&mut tree);
        keep_for(&mut job, &mut tree, 400);
        assert!(ticks(&mut tree) <= before + 1, "it stands");
        job.resume();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while ticks(&mut tree) <= before + 5 {
            assert!(std::time::Instant::now() < deadline, "it goes on");
            std::thread::sleep(Duration::from_millis(50));
        }
        end(child, &mut tree);
    }

    #[test]
    fn one_that_sleeps_between_is_caught_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = format!("while :; do sleep 0.01; echo >> {}; done", log.display());
        let (child, mut tree) = start(&script);
        let lines = || std::fs::read(&log).unwrap().len();
        let mut job = HeldJob::default();
        job.stop(&mut tree).unwrap();
        keep_for(&mut job, &mut tree, 1200);
        let before = lines();
        keep_for(&mut job, &mut tree, 800);
        assert_eq!(lines(), before);
        job.resume();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while lines() == before {
            assert!(std::time::Instant::now() < deadline, "it goes on");
            std::thread::sleep(Duration::from_millis(50));
        }
        end(child, &mut tree);
    }

    #[test]
    fn a_member_that_is_killed_ends() {
        let (mut child, mut tree) = start("sh -c 'while :; do :; done'; exit 7");
        let parent = Process::find(child.id()).unwrap();
        let inner = tree.iter().map(Process::of).find(|member| *member != parent).unwrap();
        tree = Tree::new(&[inner]);
        let mut job = HeldJob::default();
        job.stop(&mut tree).unwrap();
        rustix::process::kill_process(inner.pid, rustix::process::Signal::KILL).unwrap();
        keep_for(&mut job, &mut tree, 80);
        // Its parent learns of it although we still hold the job.
        assert_eq!(child.wait().unwrap().code(), Some(7));
        job.resume();
    }
}
