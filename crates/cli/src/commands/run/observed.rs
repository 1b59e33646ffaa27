//! A command that runs as a child: what is told of it while it runs, and at its end.

use std::io;

use discnice_processes::tree::Process;

use super::Run;
use crate::child;
use crate::classes::MappedClass;
use crate::commands::summary;
use crate::escapes::Escapes;
use crate::family::Family;
use crate::launch::{self, Ended};
use crate::live::Live;
use crate::output::{self, tell};
use crate::report::{Course, JobRecord, LOOKS, ReportDraft, Waited};
use crate::schedule::{Job, Schedule};
use crate::strict::Strictness;
use crate::terminal::Tap;
use crate::used_up::Teller;

impl Run {
    /// Runs the command as a child, and listens to what it prints.
    pub(super) fn listen(
        &self,
        prepared: Option<(MappedClass, bool)>,
        strict: Strictness,
        tap: Tap,
    ) -> io::Result<Ended> {
        let mut look = || tap.look();
        let child = || {
            tap.enter();
            self.execute(prepared, strict)
        };
        let ended = launch::supervise(child, Some(&mut look));
        tap.finish();
        ended
    }

    /// Runs the command as a child, and tells at the end what it did.
    pub(super) fn observe(
        &self,
        made: (MappedClass, bool),
        draft: Option<ReportDraft>,
        strict: Strictness,
        tap: Option<Tap>,
    ) -> io::Result<Ended> {
        let mut seen = Observation::begin(self, made.0, draft.is_some());
        let mut look = || {
            tap.iter().for_each(Tap::look);
            seen.look();
        };
        let child = || {
            tap.iter().for_each(Tap::enter);
            self.execute(Some(made), strict)
        };
        let ended = launch::supervise(child, Some(&mut look))?;
        seen.course.end();
        tap.into_iter().for_each(Tap::finish);
        seen.settle();
        self.tell(&seen, draft, ended);
        Ok(ended)
    }

    /// Tells what was seen of a command that has ended.
    fn tell(&self, seen: &Observation, draft: Option<ReportDraft>, ended: Ended) {
        let Observation { found, course, waited, .. } = seen;
        let escaped = seen.escapes.list();
        if self.summary && !matches!(ended, Ended::Unstarted(_)) {
            summary::tell_all(found, course, waited, &escaped);
        }
        if let Some(draft) = draft {
            let record = JobRecord::new(&self.command, found, course, waited, ended, escaped);
            if let Err(error) = draft.finish(&record) {
                // The command has done its work, which its exit status must say.
                tell!("discnice: {error:#}");
            }
        }
    }
}

/// What is seen of a command that runs as a child, and what is done when it is time.
struct Observation {
    found: MappedClass,
    family: Family,
    schedule: Schedule,
    /// Looked for once the child is there.
    job: Option<Option<Job>>,
    used_up: Teller,
    course: Course,
    waited: Waited,
    escapes: Escapes,
    live: Option<Live>,
    looks: u32,
    /// Whether waits and escapes are told of, and whether there is to be a report.
    is_told: bool,
    is_reported: bool,
}

impl Observation {
    fn begin(run: &Run, found: MappedClass, is_reported: bool) -> Self {
        let family = Family::of(found);
        let live = run.is_live().then(|| Live::begin(&family));
        Self {
            course: Course::begin(&family),
            waited: Waited::begin(&family),
            schedule: run.schedule.begin(&found, || run.has_own_disk()),
            is_told: run.summary || live.is_some() || is_reported,
            escapes: Escapes::default(),
            used_up: Teller::default(),
            job: None,
            looks: 0,
            found,
            family,
            live,
            is_reported,
        }
    }

    fn look(&mut self) {
        self.family.look();
        self.used_up.look(&self.family);
        let job = self.job.get_or_insert_with(|| child_in(self.found)).as_ref();
        if let Some(job) = job {
            self.schedule.look(job);
        }
        if !self.is_told {
            return;
        }
        self.waited.look(&self.family);
        if let (Some(live), Some(job)) = (&mut self.live, job) {
            live.look(job, &self.family, &self.waited);
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS) {
            self.escapes.look(&self.family);
            if self.is_reported {
                self.course.tick(&self.family);
            }
        }
    }

    /// Takes account of all that was moved, once the command has ended.
    fn settle(&mut self) {
        output::show_live("");
        self.schedule.end(&self.found);
        self.family.settle();
        self.course.tick(&self.family);
    }
}

/// The job that the child of this process is.
fn child_in(found: MappedClass) -> Option<Job> {
    let root = Process::find(child::id()?)?;
    Some(Job { found, roots: vec![root] })
}
