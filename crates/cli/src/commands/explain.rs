//! `discnice explain`.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use discnice_escape::Foreign;
use discnice_watcher::process::pin;

use crate::classes;
use crate::config::ConfigFiles;
use crate::explanation::command::{ByProgress, Start};
use crate::explanation::{Explanation, command, running};
use crate::mechanism::MechanismChoice;
use crate::membership;
use crate::strict::Strictness;
use crate::{output, program};

const EXAMPLES: &str = "\
Examples:
  discnice explain 4711       what holds process 4711, and what it is waiting for
  discnice explain nightly    the same for class nightly
  discnice explain restic     what would hold it; with a limit: discnice run --dry-run -d 5M restic";

/// Explain what limits a class or process and what it waits for, or what would limit a command
///
/// A number means the process with that PID, the name of a class means that class, and anything else is a command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// What to explain
    #[arg(value_name = "PID|CLASS|COMMAND", required = true, allow_negative_numbers = true)]
    subject: OsString,
}

impl Explain {
    /// Prints it.
    ///
    /// # Errors
    /// There is nothing of this name.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        print(&self.explanation()?, self.json)?;
        Ok(ExitCode::SUCCESS)
    }

    fn explanation(&self) -> anyhow::Result<Explanation> {
        let word = self.subject.to_string_lossy();
        if word.is_empty() {
            bail!("nothing to explain: the name is empty; give a PID, a class or a command");
        }
        if let Ok(number) = word.parse::<i32>() {
            let pinned = pin(number)?;
            let class = membership::class_of(&pinned)?;
            return Ok(running::process(&pinned, class));
        }
        if let Some(found) = classes::named(&word)? {
            return Ok(running::class(&found));
        }
        let Some(path) = program::find(&self.subject) else {
            let similar = classes::similar(&word);
            let hint = similar.map_or_else(
                || "see `discnice status` for classes and processes".to_owned(),
                |similar| format!("did you mean class {similar}?"),
            );
            bail!("no class and no program {}; {hint}", Foreign::word(&self.subject));
        };
        if let Some(fault) = program::fault(&path) {
            bail!("cannot look at {}: {fault}", Foreign::path(&path));
        }
        let limits = ConfigFiles::load()?.default_limits()?;
        Ok(command::explain(Start {
            name: &self.subject,
            class: "one of its own".into(),
            limits,
            mechanism: MechanismChoice::default(),
            strict: Strictness::of(false)?,
            when: Vec::new(),
            by_progress: ByProgress::No,
        }))
    }
}

/// Prints an explanation.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(explanation: &Explanation, json: bool) -> anyhow::Result<()> {
    if json {
        output::json(&serde_json::to_string_pretty(explanation)?)?;
    } else {
        explanation.lines().say()?;
    }
    Ok(())
}
