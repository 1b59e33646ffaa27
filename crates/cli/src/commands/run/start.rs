//! How a command is made ready to be held, and executed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use discnice_escape::Foreign;
use discnice_progress::control::launch::HeldBack;
use discnice_sys::{process, time};
use discnice_units::Nanos;
use discnice_watcher::daemon::client::Confirmation;

use super::{NOT_EXECUTABLE, NOT_FOUND, Run};
use crate::classes::MappedClass;
use crate::holding::{Holding, Unheld};
use crate::launch::{self, Variables};
use crate::mechanism::Plan;
use crate::output::tell;
use crate::program::{self, ProgramKind};
use crate::strict::{NotStarted, OURS, Strictness};
use crate::{fleet, guest, library, own_policy, stack, watching};

/// A daemon that is started watches within this, also on a machine with much to do, or programs that wait for it go on
/// without.
const ARRIVAL: Nanos = Nanos::from_millis(500);

impl Run {
    /// Executes the command; returns the exit status only if that failed, or was refused.
    pub(super) fn execute(&self, prepared: Option<(MappedClass, bool)>, strict: Strictness) -> u8 {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let status = match self.hold(prepared, name, strict) {
            Err(refusal) => {
                tell!("discnice: {refusal}");
                OURS
            }
            // What is held back is dropped by exec, or in the end of a command that cannot be executed.
            Ok((variables, _held_back)) => {
                let variables = [variables.unwrap_or_default(), self.besides.clone()].concat();
                cannot_execute(Path::new(name), &launch::execute(&self.command, &variables))
            }
        };
        if let Some((found, true)) = prepared {
            // A class that was made for a command that does not exist is of no use.
            let _ = found.remove();
        }
        status
    }

    /// Makes everything ready that is to hold the command.
    fn hold(
        &self,
        prepared: Option<(MappedClass, bool)>,
        name: &OsStr,
        strict: Strictness,
    ) -> Result<(Option<Variables>, Option<HeldBack>), NotStarted> {
        let found = prepared.map(|(found, _)| found);
        let started = self.polite.wanted().then(|| self.polite.start_beside(found));
        let held_back = strict.have(started.transpose().map_err(Unheld::NotPolite))?.flatten();
        let variables = match &found {
            Some(found) => self.submit(found, name, strict)?,
            None => None,
        };
        if let Some(found) = found.filter(|found| found.class.is_guest()) {
            strict.have(guest::become_one(found.class).map_err(Unheld::NoGuest))?;
        }
        Ok((variables, held_back))
    }

    /// Makes this process, which is about to execute the command, regulated; returns what the
    /// command needs in its environment.
    fn submit(
        &self,
        found: &MappedClass,
        name: &OsStr,
        strict: Strictness,
    ) -> Result<Option<Variables>, NotStarted> {
        let apart = found.class.is_per_child();
        let holding = Holding::of(self.mechanism, name).apart(apart);
        let missed = holding.misses(&found.class.limits());
        let Holding { plan, program, unheld, .. } = holding;
        let has_library = !matches!(unheld, Some(Unheld::NoLibrary(_)));
        unheld.into_iter().chain(missed).try_for_each(|unheld| strict.mind(unheld))?;
        // Before this process is a member: the copy that may be made is no job's.
        let preload = has_library.then(library::to_preload);
        let member = launch::enlist(found, name);
        // Before anything is read at what the class may move.
        if let Some(problem) = fleet::await_lease(found) {
            tell!("discnice: {problem}");
        }
        if let (Some(member), Some(path)) = (member, &program) {
            launch::bring_in(found, member, path);
        }
        if let Some(member) = member {
            launch::expect_command(found, member);
        }
        if let Some(member) = member.filter(|_| apart) {
            launch::leave_to_watcher(found, member);
        }
        let kind = program.as_deref().map_or(ProgramKind::Unknown, program::kind);
        self.have_watched(found, &plan, strict)?;
        if strict.0 {
            strict.have(launch::bar_from_rights().map_err(Unheld::GainsRights))?;
        }
        let refused = plan.enter(found, member).err();
        let followed = found.class.watcher().follows_births(time::now().0, process::exists);
        // What finds its way into children by itself would put them into this class.
        let carries =
            !apart && plan.carries(followed) || refused.is_some() && stack::fits_preloading();
        if let Some(refused) = refused {
            strict.mind(Unheld::NoFilter(
                plan.without_filter(),
                name.into(),
                refused.to_string(),
            ))?;
        }
        let Some(preload) = preload.filter(|_| carries) else { return Ok(None) };
        let variables = preload.map(|path| launch::variables(found, member, &path));
        let variables = variables.map_err(Unheld::NoLibrary);
        Ok(strict.have(variables)?.map(|both| launch::for_program(kind, both)))
    }

    /// Has the class watched from outside, for what the other mechanisms cannot see. The command
    /// waits for that only if it has no other, or must have it.
    fn have_watched(
        &self,
        found: &MappedClass,
        plan: &Plan,
        strict: Strictness,
    ) -> Result<(), NotStarted> {
        // One that gives way may be free at the moment, and its watcher sees whether others are busy.
        let steered = found.class.fleet().is_joined() || own_policy::is_own(&found.class.limits());
        let always = found.class.yields() || steered;
        let disk = always || found.class.is_limited() && !plan.is_supervised();
        let paused = found.class.is_paused();
        // The library sees no traffic of static children, nor does a filter.
        let needed = disk || found.class.minds_traffic() || guest::memory(found.class).is_some();
        let watched = self.mechanism.watches() && needed;
        if !watched && !paused {
            return Ok(());
        }
        if self.mechanism.is_strict() {
            found.class.watcher().be_strict();
        }
        found.class.watcher().await_until(time::now().plus(ARRIVAL).0);
        let awaited = *plan == Plan::Watched || strict.0 || paused;
        let confirmation = if awaited { Confirmation::Awaited } else { Confirmation::Unneeded };
        strict.have(watching::watch(found, confirmation).map_err(Unheld::NotWatched)).map(drop)
    }
}

fn cannot_execute(name: &Path, error: &io::Error) -> u8 {
    let why = program::trouble(name, error);
    tell!("discnice: cannot run {}: {why}", Foreign::path(name));
    let missing = error.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { NOT_EXECUTABLE }
}
