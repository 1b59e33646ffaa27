//! A job that runs only while its conditions are met: it stands otherwise, as by `discnice pause`.

use std::time::{Duration, Instant};

use discnice_ledger::policy::Conditions;

use super::conditions::{OnlyWhen, Watcher};
use super::guardian;
use super::job::Job;
use crate::binding::conditions;
use crate::classes::Found;
use crate::output::tell;
use crate::paused::Chosen;

/// How often the conditions are looked at.
const LOOK: Duration = Duration::from_millis(1000);

/// What is known of the job and its conditions.
#[derive(Debug)]
pub struct Only {
    watcher: Watcher,
    next: Instant,
    unmet: Conditions,
    /// It was seen to stand, because of us.
    stood: bool,
    /// It was told what the job waits for.
    told: bool,
    /// A guardian lets the job go on if we are killed.
    guarded: bool,
}

impl Only {
    /// Looks for the first time. A class of the job's own stands before anything runs in it.
    pub fn begin(wanted: &OnlyWhen, found: &Found) -> Self {
        let mut watcher = Watcher::new(wanted);
        let unmet = watcher.unmet();
        found.class.set_unmet(unmet);
        let mut only = Self {
            watcher,
            next: Instant::now() + LOOK,
            unmet,
            stood: false,
            told: false,
            guarded: false,
        };
        if found.is_automatic() && !unmet.is_empty() {
            only.guard(vec![Chosen::class(*found)]);
            found.set_paused(true);
        }
        only
    }

    /// Has the job guarded before it stands for the first time.
    fn guard(&mut self, parts: Vec<Chosen>) {
        // Where processes are short, the job stands without a guardian.
        self.guarded = self.guarded || guardian::start(parts).is_ok();
    }

    /// Has the job stand or go on, as the conditions are.
    pub fn look(&mut self, job: &Job) {
        let now = Instant::now();
        // A job that is to stand and does not has only begun.
        let is_new = !self.unmet.is_empty() && !self.stood;
        if now < self.next && !is_new {
            return;
        }
        if now >= self.next {
            self.next = now + LOOK;
            self.unmet = self.watcher.unmet();
            job.found.class.set_unmet(self.unmet);
        }
        if self.unmet.is_empty() {
            if std::mem::take(&mut self.stood) && job.stands() {
                job.go_on();
                tell!("discnice: the job goes on");
            }
            self.told = false;
        } else if job.stands() {
            self.stood = true;
            self.tell();
        } else if !self.stood {
            // One that has stood and goes on does so because the user wants it.
            self.guard(job.parts());
            job.pause();
        }
    }

    fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            tell!("discnice: the job waits for {}", conditions(self.unmet));
        }
    }
}
