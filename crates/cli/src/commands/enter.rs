//! `discnice enter`: a login session as a class.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser};
use discnice_ledger::policy::{Limits, Resource};

use super::{Cli, Command};
use crate::classes;
use crate::config::ConfigFiles;
use crate::explanation;
use crate::output::{say, tell};

/// The class of login sessions.
const SESSION: &str = "session";
/// In the environment of a session's programs: what it is in. A login shell inside of it does not enter again.
const ENTERED: &str = "DISCNICE_SESSION";
/// What sshd(8) was asked to execute, where `ForceCommand` is this program.
const ORDERED: &str = "SSH_ORIGINAL_COMMAND";
/// Waits of less seconds in all are not told of.
const WORTH_TELLING: f64 = 1.0;

const EXAMPLES: &str = "\
Examples:
  discnice enter               the login shell, in the class `session` if it is configured
  discnice enter /bin/zsh      the same with another shell";

/// Start a login shell as a member of the class `session`
///
/// If the configuration of the site or the user has a section [class.session], all login sessions of the user on this machine
/// share that class. Without it, or if anything fails, the shell starts without limits. Called by profile.d/discnice.sh, or
/// by sshd as ForceCommand.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Enter {
    /// Only say how long the session's programs have waited, and to a terminal what for, if that is longer than this by
    /// a second
    #[arg(long, value_name = "SECONDS", hide = true)]
    held_since: Option<f64>,
    /// The shell to start [default: $SHELL]
    shell: Option<OsString>,
}

impl Enter {
    /// Executes the shell in this process's place, so it returns only when that failed.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(before) = self.held_since {
            return tell_of_waits(before);
        }
        let shell = self.shell.or_else(|| env::var_os("SHELL")).filter(|shell| !shell.is_empty());
        let shell = shell.unwrap_or_else(|| "/bin/sh".into());
        let (argument, ordered) = match env::var_os(ORDERED) {
            Some(command) => ("-c", Some(command)),
            None => ("-l", None),
        };
        let words: Vec<OsString> = [shell, argument.into()].into_iter().chain(ordered).collect();
        let limits = if env::var_os(ENTERED).is_some() { None } else { settings() };
        let Some(limits) = limits else {
            let error = crate::launch::execute(&words, &[(ENTERED, OsString::new())]);
            tell!("discnice: cannot run the shell: {error}");
            return Ok(ExitCode::from(crate::strict::OURS));
        };
        let mark = (ENTERED, SESSION.into());
        Ok(ExitCode::from(in_session(&words)?.certainly(&limits, mark)))
    }
}

/// The limits of sessions, of which a person is told; `None` without any.
fn settings() -> Option<Limits> {
    let config = ConfigFiles::load().inspect_err(|error| tell!("discnice: {error:#}")).ok()?;
    let limits = config.class(SESSION).inspect_err(|error| tell!("discnice: {error:#}")).ok()??;
    if crate::output::is_watched() {
        let message = config.message(SESSION).map_or_else(String::new, |text| format!(". {text}"));
        tell!("discnice: your logins on this machine share {}{message}", described(&limits));
    }
    Some(limits)
}

/// `run` with that command, in the class.
fn in_session(words: &[OsString]) -> anyhow::Result<super::run::Run> {
    let before = ["discnice", "run", "--class", SESSION, "--"].map(OsStr::new);
    let words = before.into_iter().chain(words.iter().map(OsString::as_os_str));
    match Cli::try_parse_from(words)?.command {
        Command::Run(run) => Ok(run),
        _ => None.context("no command to run"),
    }
}

/// All rates that are limited.
fn described(limits: &Limits) -> String {
    let all = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
    let words: Vec<String> = all.map(|one| explanation::rate(one, limits.rate(one))).collect();
    if words.is_empty() { "no limit".into() } else { words.join(", ") }
}

/// Prints the seconds that members of the class have waited, and tells of them if they are more than before.
fn tell_of_waits(before: f64) -> anyhow::Result<ExitCode> {
    let found = classes::find(SESSION);
    let waited = found.as_ref().map_or(0.0, |found| found.class.waits().1.as_secs_f64());
    if let Some(found) = found.filter(|_| waited - before >= WORTH_TELLING) {
        // It was said at login already where it cannot be read now.
        let config = ConfigFiles::load().ok();
        let message = config.as_ref().and_then(|config| config.message(SESSION));
        let message = message.map_or_else(String::new, |text| format!(". {text}"));
        tell!(
            "discnice: your programs have waited {:.0} s, as your logins on this machine share {}{message}",
            waited - before,
            described(&found.class.limits())
        );
    }
    say!("{waited:.1}")?;
    Ok(ExitCode::SUCCESS)
}
