//! What a key asks for beyond the view itself: other limits, pauses, ends.

use anyhow::{Context, bail};
use discnice_ledger::policy::Resource;
use discnice_units::Rate;
use discnice_watcher::process::pin;
use rustix::process::Signal;

use crate::classes::{self, MappedClass};
use crate::commands::class;
use crate::membership;
use crate::output::counted;
use crate::paused::{Chosen, PauseTarget};
use crate::running::Running;

/// An action on a class or process; its outcome is shown in the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Change a limit.
    Limit(Change),
    /// Pause a class or process, or resume it.
    Pause(Target),
    /// Ask a class's processes, or one of them, to end.
    End(Target),
}

/// A new threshold of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The class's name.
    pub class: String,
    /// The resource that it limits.
    pub resource: Resource,
    /// The new rate.
    pub rate: Rate,
}

/// A class, or one of its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The class's name.
    pub class: String,
    /// The process, if only one is meant.
    pub process: Option<u32>,
}

impl Action {
    /// Performs the action; returns what to tell the user.
    pub fn apply(&self) -> String {
        let done = match self {
            Self::Limit(change) => change.apply(),
            Self::Pause(target) => target.pause_or_resume(),
            Self::End(target) => target.end(),
        };
        done.unwrap_or_else(|error| format!("{error:#}"))
    }
}

impl Change {
    fn apply(&self) -> anyhow::Result<String> {
        let found = find(&self.class)?;
        class::apply(&found, found.class.limits().with(self.resource, self.rate))?;
        Ok(format!("{}: {} {}", self.class, self.resource.option(), self.rate))
    }
}

impl Target {
    /// The word that names it for `discnice pause`.
    fn word(&self) -> String {
        self.process.map_or_else(|| self.class.clone(), |process| process.to_string())
    }

    fn pause_or_resume(&self) -> anyhow::Result<String> {
        let word = self.word();
        if let Ok(paused) = Chosen::to_resume(&word) {
            paused.go_on();
            return Ok(format!("{word} is resumed"));
        }
        let awake = PauseTarget::to_pause(&word)?.taken()?.stand()?;
        Ok(match awake.first() {
            None => format!("{word} is paused; z resumes it"),
            Some((process, why)) => {
                format!("{word} is paused, but process {process} still runs: {why}")
            }
        })
    }

    /// Sends SIGTERM. What is paused goes on, as it would not see the signal otherwise.
    fn end(&self) -> anyhow::Result<String> {
        let found = find(&self.class)?;
        let members = Running::all(&found).map(|running| running.member.process());
        let wanted: Vec<u32> =
            members.filter(|id| self.process.is_none_or(|process| process == *id)).collect();
        let mut told = 0;
        for id in &wanted {
            let Ok(pinned) = pin(id.cast_signed()) else { continue };
            // The number may have been another process's by the time it was pinned.
            if membership::lists(&found, &pinned) {
                let sent = pinned.signal(Signal::TERM);
                sent.with_context(|| format!("cannot end process {id}"))?;
                told += 1;
            }
        }
        if told == 0 {
            bail!("{} has ended", self.word());
        }
        if let Ok(paused) = Chosen::to_resume(&self.word()) {
            paused.go_on();
        }
        Ok(format!("asked {} to end (SIGTERM)", processes(told)))
    }
}

/// How many processes, in words.
pub fn processes(count: usize) -> String {
    counted(count, "process", "processes")
}

fn find(name: &str) -> anyhow::Result<MappedClass> {
    classes::named(name)?.with_context(|| format!("class {name} is gone"))
}
