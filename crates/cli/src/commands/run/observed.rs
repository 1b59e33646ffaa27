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
use crate::schedule::Job;
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
        let (found, _) = made;
        let mut family = Family::of(found);
        let mut course = Course::begin(&family);
        let mut escapes = Escapes::default();
        let mut waited = Waited::begin(&family);
        let (mut looks, mut used_up) = (0u32, Teller::default());
        let mut live = self.is_live().then(|| Live::begin(&family));
        let watched = self.summary || live.is_some() || draft.is_some();
        let (mut schedule, mut job) = (self.schedule.begin(&found, || self.has_own_disk()), None);
        let mut look = || {
            tap.iter().for_each(Tap::look);
            family.look();
            used_up.look(&family);
            if let Some(job) = job.get_or_insert_with(|| child_in(found)) {
                schedule.look(job);
            }
            if !watched {
                return;
            }
            waited.look(&family);
            if let (Some(live), Some(job)) = (&mut live, job.as_ref().and_then(Option::as_ref)) {
                live.look(job, &family, &waited);
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                escapes.look(&family);
                if draft.is_some() {
                    course.tick(&family);
                }
            }
        };
        let child = || {
            tap.iter().for_each(Tap::enter);
            self.execute(Some(made), strict)
        };
        let ended = launch::supervise(child, Some(&mut look))?;
        course.end();
        tap.into_iter().for_each(Tap::finish);
        output::show_live("");
        schedule.end(&found);
        family.settle();
        course.tick(&family);
        let escaped = escapes.list();
        if self.summary && !matches!(ended, Ended::Unstarted(_)) {
            summary::tell_all(&found, &course, &waited, &escaped);
        }
        if let Some(draft) = draft {
            let record = JobRecord::new(&self.command, &found, &course, &waited, ended, escaped);
            if let Err(error) = draft.finish(&record) {
                // The command has done its work, which its exit status must say.
                tell!("discnice: {error:#}");
            }
        }
        Ok(ended)
    }
}

/// The job that the child of this process is.
fn child_in(found: MappedClass) -> Option<Job> {
    let root = Process::find(child::id()?)?;
    Some(Job { found, roots: vec![root] })
}
