//! `discnice run`.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use discnice_policy::{Limits, pace};
use discnice_sys::time;

use super::limits::LimitArgs;
use crate::classes::{self, Found};
use crate::{launch, program};

/// Exit statuses of commands that could not be started, as env(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a command, with all its children, within limits
#[derive(Debug, Args)]
pub struct Run {
    /// Put it into this class, with all others that are in it; made if need be
    #[arg(long, value_name = "NAME", value_parser = classes::check_name)]
    class: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Executes the command in this process's place, so it returns only when that failed.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let Some(name) = self.command.first() else {
            bail!("no command given; put it behind `--`")
        };
        if self.limits.is_empty() && self.class.is_none() {
            bail!(
                "no limit given; say for example --disk 5M, or --class NAME for a class that has one"
            );
        }
        let limits = self.limits.over(Limits::UNLIMITED)?;
        let prepared = self.prepare(&limits);
        let variables = match &prepared {
            Ok((found, _)) => launch::variables(found, launch::enlist(found, name))
                .unwrap_or_else(|error| {
                    warn(&error);
                    [("LD_PRELOAD", OsString::new()), ("DISCNICE", OsString::new())]
                })
                .to_vec(),
            Err(error) => {
                warn(error);
                Vec::new()
            }
        };
        warn_of_obstacles(name);
        let error = launch::execute(&self.command, &variables);
        if let Ok((found, true)) = prepared {
            // A class that was made for a command that does not exist helps nobody.
            found.remove()?;
        }
        Ok(cannot_execute(Path::new(name), &error))
    }

    /// The class with its limits; the second value tells whether it was made.
    fn prepare(&self, limits: &Limits) -> anyhow::Result<(Found, bool)> {
        let command = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let base = command.rsplit('/').next().unwrap_or_default();
        let name = self
            .class
            .clone()
            .unwrap_or_else(|| classes::automatic_name(base, discnice_sys::process::id()));
        let (found, new) = classes::find_or_create(&name)?;
        if new {
            found.class.set_limits(time::now(), limits, pace::WINDOW);
        } else if !self.limits.is_empty() {
            super::class::change(&found, &self.limits)?;
        }
        Ok((found, new))
    }
}

/// The command runs all the same: a backup that is too fast beats no backup.
fn warn(error: &anyhow::Error) {
    eprintln!("discnice: not limited: {error:#}");
}

fn warn_of_obstacles(name: &std::ffi::OsStr) {
    let Some(path) = program::find(name) else { return };
    if let Some(obstacle) = program::kind(&path).obstacle() {
        eprintln!("discnice: not limited: {} {obstacle}", path.display());
    }
}

fn cannot_execute(name: &Path, error: &io::Error) -> ExitCode {
    eprintln!("discnice: cannot run {}: {error}", name.display());
    let missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if missing { NOT_FOUND } else { NOT_EXECUTABLE })
}
