//! A command that is not started yet.

use std::ffi::OsStr;

use discnice_escape::Foreign;
use discnice_ledger::policy::Limits;

use super::{Explanation, PROGRESS, limits};
use crate::holding::Holding;
use crate::mechanism::{MechanismChoice, Plan};
use crate::program::{self, ProgramKind};
use crate::strict::Strictness;

/// How a command would be started.
#[derive(Debug)]
pub struct Start<'a> {
    /// Its name or path.
    pub name: &'a OsStr,
    /// Its class, in words.
    pub class: String,
    /// The limits of that.
    pub limits: Limits,
    /// What was asked for.
    pub mechanism: MechanismChoice,
    /// Whether it is refused if a limit cannot hold.
    pub strict: Strictness,
    /// When it is to run, in words.
    pub when: Vec<String>,
    /// Whether its progress regulates it.
    pub by_progress: ByProgress,
}

/// Whether the progress of a command regulates it (`--polite`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByProgress {
    /// Its limits alone do.
    No,
    /// Both do.
    Too,
    /// Nothing else does.
    Alone,
}

/// What was found of a command.
#[derive(Debug)]
pub struct Found {
    /// How it is going to be held.
    pub holding: Holding,
    /// What holds it in words, or why nothing does.
    pub told: Result<String, String>,
}

/// Looks at a command as `run` does, without changing anything; `apart` tells whether its children get classes of their own.
pub fn look(mechanism: MechanismChoice, name: &OsStr, apart: bool) -> Found {
    let holding = Holding::of(mechanism, name).apart(apart);
    let kind = holding.program.as_deref().map_or(ProgramKind::Unknown, program::kind);
    let told = holding.plan.explain(kind);
    let told =
        told.and_then(|how| holding.unheld.as_ref().map_or(Ok(how), |why| Err(why.to_string())));
    Found { holding, told }
}

/// Explains how it would be held.
pub fn explain(start: Start<'_>) -> Explanation {
    let Found { holding, told } = look(start.mechanism, start.name, start.limits.per_child());
    let path = holding.program.as_deref().map(|path| Foreign::path(path).to_string());
    let about = match path {
        Some(path) => format!("command {}: {path}", Foreign::word(start.name)),
        None => format!("command {}: not found in PATH", Foreign::word(start.name)),
    };
    let missed = holding.misses(&start.limits).filter(|_| start.strict.0);
    let told = missed.map_or(told, |missed| Err(missed.to_string()));
    let (held_by, mut not_held) = match told {
        _ if holding.program.is_none() => (Vec::new(), vec!["there is no such program".into()]),
        _ if start.by_progress == ByProgress::Alone => (vec![PROGRESS.into()], Vec::new()),
        Ok(how) if start.by_progress == ByProgress::Too => {
            (vec![how, PROGRESS.into()], escapes(&holding, &start))
        }
        Ok(how) => (vec![how], escapes(&holding, &start)),
        Err(why) => (Vec::new(), vec![why]),
    };
    if start.strict.0 && !not_held.is_empty() && held_by.is_empty() {
        not_held.push("it would not be started (--strict)".into());
    }
    let limits = limits(&start.limits);
    let (class, when) = (Some(start.class), start.when);
    Explanation { about, class, limits, when, held_by, waits_for: Vec::new(), not_held }
}

/// What of a command that is held would not be.
fn escapes(holding: &Holding, start: &Start<'_>) -> Vec<String> {
    let mut said: Vec<&str> = Vec::new();
    let watched = start.mechanism.watches();
    match holding.plan {
        Plan::Preload => {
            said.push(if watched && !start.mechanism.is_strict() {
                "page faults on mapped files and io_uring: held at its next call, or from outside once it is 8 MiB ahead"
            } else if watched {
                "page faults on mapped files and io_uring: what passes between two looks (0.5 to 10 ms)"
            } else {
                "page faults on mapped files and io_uring, until its next call"
            });
            said.push(if watched {
                "children that the library cannot enter (static, Go): what passes between two looks (0.5 to 10 ms)"
            } else {
                "children that the library cannot enter (static, Go): all of it"
            });
            if !start.strict.0 {
                said.push("children with other rights (setuid programs such as sudo): all of it, unless --strict denies them these rights");
            }
        }
        Plan::Supervised | Plan::SupervisedWholly(_) => {
            said.push("page faults on mapped files, until its next call");
        }
        Plan::Watched => {
            said.push("what passes between two looks (0.5 to 10 ms)");
        }
        Plan::Escape(..) => {}
    }
    let missed = holding.misses(&start.limits).map(|missed| missed.to_string());
    said.into_iter().map(str::to_owned).chain(missed).collect()
}
