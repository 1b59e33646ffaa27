//! A job that runs only while its conditions are met: it stands otherwise, as by `discnice pause`.

use std::time::{Duration, Instant};

use discnice_ledger::policy::Conditions;
use discnice_processes::tree::Tree;
use discnice_processes::wishes;

use super::conditions::{OnlyWhen, Watcher};
use super::guardian::Guardian;
use super::job::Job;
use super::until::Then;
use crate::binding::conditions;
use crate::child;
use crate::classes::MappedClass;
use crate::output::tell;
use crate::paused::Chosen;

/// How often the conditions are looked at.
const LOOK: Duration = Duration::from_millis(1000);

/// Whether the job stands, and because of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing was done to it since the conditions were met.
    No,
    /// It was paused by us, and was not seen to stand yet.
    Begun,
    /// It was seen to stand, because of us.
    Ours,
    /// It stands, or goes on, because the user wants it: that holds until the conditions are met.
    Users,
    /// It was asked to end: it is left alone, to clean up and to exit.
    Asked,
}

/// What is known of the job and its conditions.
#[derive(Debug)]
pub struct Only {
    watcher: Watcher,
    next: Instant,
    unmet: Conditions,
    standing: Standing,
    /// Lets the job go on if we are killed.
    guardian: Option<Guardian>,
    /// The job's processes when it was last seen to stand: its first ones may end, and leave the others.
    tree: Tree,
}

impl Only {
    /// Looks for the first time. A class of the job's own stands before anything runs in it.
    pub fn begin(wanted: &OnlyWhen, found: &MappedClass) -> Self {
        let mut watcher = Watcher::new(wanted);
        let unmet = watcher.unmet();
        found.class.set_unmet(unmet);
        let (next, standing) = (Instant::now() + LOOK, Standing::No);
        let mut only =
            Self { watcher, next, unmet, standing, guardian: None, tree: Tree::default() };
        if found.is_automatic() && !unmet.is_empty() {
            only.guard(*found, vec![Chosen::class(*found)]);
            found.set_paused(true);
            only.standing = Standing::Begun;
        }
        only
    }

    /// Has the job guarded before it stands for the first time.
    fn guard(&mut self, found: MappedClass, parts: Vec<Chosen>) {
        if self.guardian.is_none() {
            // Where processes are short, the job stands without a guardian.
            self.guardian = Guardian::start(found, parts).ok();
        }
    }

    /// Whether the job stands, or soon will, because of us.
    fn is_ours(&self) -> bool {
        matches!(self.standing, Standing::Begun | Standing::Ours)
    }

    /// Has the job stand or go on, as the conditions are.
    pub fn look(&mut self, job: &Job) {
        if self.standing == Standing::Asked {
            return;
        }
        if self.was_asked_to_end() {
            return self.leave_alone(job);
        }
        let now = Instant::now();
        // A job that is to stand and does not has only begun.
        let is_new =
            !self.unmet.is_empty() && matches!(self.standing, Standing::No | Standing::Begun);
        if now < self.next && !is_new {
            return;
        }
        if now >= self.next {
            self.next = now + LOOK;
            self.unmet = self.watcher.unmet();
        }
        self.standing = if self.unmet.is_empty() { self.go_on(job) } else { self.stand(job) };
        // The guardian takes a job that waits for nothing for one that the user has paused.
        let waits_for = if self.is_ours() { self.unmet } else { Conditions::NONE };
        job.found.class.set_unmet(waits_for);
        if self.is_ours() {
            self.know_tree(job);
        }
    }

    /// Learns which processes the job has, and keeps those that become orphans.
    fn know_tree(&mut self, job: &Job) {
        if job.found.is_automatic() {
            return;
        }
        if self.tree.is_empty() {
            self.tree = Tree::new(&job.roots);
        } else {
            self.tree.refresh();
        }
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(&self.tree);
        }
    }

    /// Lets the job go on, with all its processes that are known by now.
    fn resume(&mut self, job: &Job) {
        self.know_tree(job);
        self.let_go(&job.found);
    }

    /// Lets go on what stands because of us, also what the ended first processes of the job have left.
    fn let_go(&mut self, found: &MappedClass) {
        if found.is_automatic() {
            return Chosen::class(*found).go_on();
        }
        let tree = std::mem::take(&mut self.tree);
        let first = tree.first().into_iter();
        first.for_each(|process| Chosen::part(*found, process).go_on());
    }

    /// The job's first process has ended.
    pub fn over(&mut self, found: &MappedClass) {
        if self.is_ours() {
            self.tree.refresh();
            self.let_go(found);
        }
        found.class.set_unmet(Conditions::NONE);
    }

    /// Whether the job was sent a signal that asks it to end by way of this process. It may have received that while its holder
    /// was replaced, so that none is pending any more. Only SIGTERM counts while it runs: others are often handled otherwise.
    fn was_asked_to_end(&self) -> bool {
        let sent = child::take_sent(wishes::ENDS);
        sent & wishes::bit(libc::SIGTERM) != 0 || sent != 0 && self.is_ours()
    }

    /// Lets the job go on if it stands because of us, and leaves it alone from now on.
    fn leave_alone(&mut self, job: &Job) {
        if self.is_ours() {
            self.resume(job);
            tell!("discnice: the job goes on, as it is asked to end");
        }
        self.standing = Standing::Asked;
        job.found.class.set_unmet(Conditions::NONE);
    }

    /// Forgets the conditions, as this happens to the job instead.
    pub fn end(mut self, job: &Job, then: Then) {
        if then == Then::Continue && self.is_ours() {
            self.resume(job);
        }
        job.found.class.set_unmet(Conditions::NONE);
    }

    /// Lets the job go on, unless it stands because of the user.
    fn go_on(&mut self, job: &Job) -> Standing {
        if self.standing == Standing::Begun || self.standing == Standing::Ours && job.stands() {
            self.resume(job);
            tell!("discnice: the job goes on");
        }
        Standing::No
    }

    /// Has the job stand, unless the user wants it otherwise.
    fn stand(&mut self, job: &Job) -> Standing {
        match (self.standing, job.stands()) {
            (Standing::No, true) | (Standing::Ours, false) => Standing::Users,
            (Standing::Begun, true) => {
                tell!("discnice: the job waits for {}", conditions(self.unmet));
                Standing::Ours
            }
            (Standing::No | Standing::Begun, false) => {
                job.found.class.set_unmet(self.unmet);
                self.guard(job.found, job.parts());
                job.pause();
                Standing::Begun
            }
            (Standing::Ours, true) if job.is_asked_to_end() => {
                self.leave_alone(job);
                Standing::Asked
            }
            (as_before, _) => as_before,
        }
    }
}
