//! `discnice run`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use discnice_budget::Direction;
use discnice_policy::{Limits, pace};
use discnice_sys::time;
use discnice_units::{Bytes, Rate};

use super::limits::LimitArgs;
use crate::classes::{self, Found};
use crate::output::tell;
use crate::{launch, program};

/// Exit statuses of commands that could not be started, as env(1).
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a command, with all its children, within limits
#[derive(Debug, Args)]
pub struct Run {
    /// Put it into this class, with all others that are in it; made if need be
    #[arg(long, value_name = "NAME", value_parser = classes::name_parser())]
    class: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Say at the end what was read, written and waited; DiscNice then stays as the parent
    #[arg(long)]
    summary: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Executes the command in this process's place, so it returns only when that failed, or
    /// with `--summary`.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if self.command.is_empty() {
            bail!("no command given; put it behind `--`, as in: discnice run --disk 5M -- ls");
        }
        if self.limits.is_empty() && self.class.is_none() {
            bail!(
                "no limit given; say for example --disk 5M, or --class NAME for a class that has one"
            );
        }
        let limits = self.limits.over(Limits::UNLIMITED)?;
        let prepared = self.prepare(&limits).inspect_err(warn).ok();
        if !self.summary {
            return Ok(ExitCode::from(self.execute(prepared)));
        }
        let begun = Instant::now();
        let ended = launch::supervise(|| self.execute(prepared))?;
        if let Some((found, _)) = prepared {
            summarise(&found, begun.elapsed());
        }
        Ok(ended.repeat())
    }

    /// Executes the command; returns the exit status only if that failed.
    fn execute(&self, prepared: Option<(Found, bool)>) -> u8 {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let variables = prepared.and_then(|(found, _)| {
            let member = launch::enlist(&found, name);
            launch::variables(&found, member).inspect_err(warn).ok()
        });
        warn_of_obstacles(name);
        let error = launch::execute(&self.command, variables.as_ref().map_or(&[], |both| both));
        if let Some((found, true)) = prepared {
            // A class that was made for a command that does not exist helps nobody.
            let _ = found.remove();
        }
        cannot_execute(Path::new(name), &error)
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
    tell!("discnice: not limited: {error:#}");
}

fn warn_of_obstacles(name: &OsStr) {
    let Some(path) = program::find(name) else { return };
    if let Some(obstacle) = program::kind(&path).obstacle() {
        tell!("discnice: not limited: {} {obstacle}", path.display());
    }
}

fn cannot_execute(name: &Path, error: &io::Error) -> u8 {
    tell!("discnice: cannot run {}: {error}", name.display());
    let missing = error.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// One line on standard error, as time(1).
fn summarise(found: &Found, time: Duration) {
    let class = found.class;
    let (read, written) =
        [Direction::Read, Direction::Write].map(|way| class.direction(way).total()).into();
    let rate = (read + written) as f64 / time.as_secs_f64().max(1e-3);
    let (_, waited) = class.waits();
    tell!(
        "discnice: {:.1} s, read {}, wrote {}: {} (limit {}), held {:.1} s",
        time.as_secs_f64(),
        Bytes::new(read),
        Bytes::new(written),
        Rate::per_second(rate as u64),
        class.total().rate(),
        waited.as_secs_f64(),
    );
}
