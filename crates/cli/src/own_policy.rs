//! Policies of the user's own: programs that policyd asks.

use std::path::Path;

use anyhow::{Context, ensure};
use discnice_escape::Foreign;
use discnice_ledger::Class;
use discnice_ledger::advice::Health;
use discnice_ledger::policy::{Choice, Limits};

use crate::config::ConfigFiles;
use crate::output::tell;
use crate::program;

/// Refuses a program as the policy of a class where the configuration names none for it; tells of one that cannot be started.
///
/// # Errors
/// What to do.
pub(crate) fn check(name: &str, limits: &Limits, config: &ConfigFiles) -> anyhow::Result<()> {
    ensure!(
        !is_own(limits) || config.program(name).is_some(),
        "config.toml names no program for class {name}; give [class.{name}] a policy = \"/PATH/OF/A/PROGRAM\""
    );
    let program = config.program(name).and_then(|words| words.first()).filter(|_| is_own(limits));
    if let Some(path) = program.map(Path::new)
        && let Some(fault) = program::fault(path)
    {
        let path = Foreign::path(path);
        tell!(
            "discnice: nothing asks the policy of class {name}, {path}: {fault}. Its limits hold"
        );
    }
    Ok(())
}

/// Refuses what [`check`] refuses, and a class of no name.
///
/// # Errors
/// What to do.
pub(crate) fn check_start(name: Option<&str>, limits: &Limits) -> anyhow::Result<()> {
    if !is_own(limits) {
        return Ok(());
    }
    let hint = "a policy of your own is a named class's; say --class NAME, and name the program in config.toml";
    check(name.context(hint)?, limits, &ConfigFiles::load()?)
}

/// Whether the policy is a program.
pub(crate) fn is_own(limits: &Limits) -> bool {
    limits.pace().policy == Choice::Program
}

/// How the program of a class is, in a word; `None` where the policy is none.
pub(crate) fn health(class: &Class) -> Option<&'static str> {
    (class.pace().policy == Choice::Program).then(|| match class.advice().health() {
        Health::Unasked => "unasked",
        Health::Answers => "answers",
        Health::Ended => "ended",
        Health::Silent => "silent",
        Health::Wrong => "wrong",
    })
}

/// What is wrong with the program of a class, in words.
pub(crate) fn problem(class: &Class) -> Option<&'static str> {
    match health(class)? {
        "ended" => Some("its program cannot be started, or has ended"),
        "silent" => Some("its program does not answer"),
        "wrong" => Some("its program answers what is no answer"),
        _ => None,
    }
}
