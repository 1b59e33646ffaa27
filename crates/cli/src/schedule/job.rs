//! The job that a schedule is about: its processes, and how they stand, go on and end.

use discnice_escape::Foreign;
use discnice_ledger::policy::Limits;
use discnice_processes::tree::{Process, Tree};
use discnice_processes::wishes;
use rustix::process::{Pid, Signal, kill_process};

use crate::classes::MappedClass;
use crate::config;
use crate::family::Family;
use crate::output::tell;
use crate::paused::Chosen;
use crate::running::Running;

/// A job in a class.
#[derive(Debug)]
pub struct Job {
    /// Its class.
    pub found: MappedClass,
    /// Its first processes.
    pub roots: Vec<Process>,
}

impl Job {
    /// Its processes that live.
    pub fn processes(&self) -> Vec<Pid> {
        if self.found.is_automatic() {
            let family = Family::of(self.found);
            let members = family.classes().flat_map(Running::all);
            let ids = members.map(|running| running.member.process());
            return ids.filter_map(|id| Pid::from_raw(id.cast_signed())).collect();
        }
        let tree = Tree::new(&self.roots);
        tree.iter().filter_map(|stat| Pid::from_raw(stat.id.cast_signed())).collect()
    }

    /// What `discnice resume` calls it.
    pub fn name(&self) -> String {
        match self.living_roots().next() {
            Some(root) if !self.found.is_automatic() => root.id().to_string(),
            _ => Foreign::text(&self.found.name()).to_string(),
        }
    }

    /// Of a class of its own all, otherwise the part of the class that it is.
    pub fn parts(&self) -> Vec<Chosen> {
        if self.found.is_automatic() {
            return vec![Chosen::class(self.found)];
        }
        self.living_roots().map(|root| Chosen::part(self.found, root)).collect()
    }

    /// Those of its first processes that have not ended.
    fn living_roots(&self) -> impl Iterator<Item = Process> {
        self.roots.iter().copied().filter(|root| root.stat().is_some())
    }

    /// Whether it stands.
    pub fn stands(&self) -> bool {
        let parts = self.parts();
        !parts.is_empty() && parts.iter().all(|part| part.is_paused())
    }

    /// Whether one of its processes is about to receive a signal that asks it to end.
    pub fn is_asked_to_end(&self) -> bool {
        let ids = self.processes().into_iter();
        ids.map(|process| process.as_raw_nonzero().get().unsigned_abs())
            .any(|id| wishes::awaits(id, wishes::ENDS))
    }

    /// Has it stand.
    pub fn pause(&self) {
        for part in self.parts() {
            match part.stand() {
                Ok(awake) => awake.iter().for_each(|(process, why)| {
                    tell!("discnice: process {process} still runs: {why}");
                }),
                Err(error) => tell!("discnice: not paused: {error:#}"),
            }
        }
    }

    /// Lets it go on.
    fn go_on(&self) {
        self.parts().into_iter().for_each(Chosen::go_on);
    }

    /// Asks all its processes to end. What stands goes on, so that it can.
    pub fn end(&self) {
        for process in self.processes() {
            // It may have ended just now.
            let _ = kill_process(process, Signal::TERM);
        }
        self.go_on();
    }

    /// Lets it go on without limits, as far as the site permits that.
    pub fn lift(&self) {
        self.set_limits(Limits::UNLIMITED);
    }

    /// Sets the limits of its class, as far as the site permits that.
    pub fn set_limits(&self, limits: Limits) {
        let (name, automatic) = (self.found.name(), self.found.is_automatic());
        self.found.set_limits(&config::bounded(&name, automatic, limits));
    }
}
