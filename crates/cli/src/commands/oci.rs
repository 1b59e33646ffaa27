//! `discnice oci-runtime`, installed as `discnice-runc`: an OCI runtime that reads limits from a container's annotations, and executes runc.
//!
//! What is to hold the container is put around runc itself, and inherited by all that it starts: a filter for system calls,
//! which holds programs of any C library or none, and needs nothing of ours in the container (docs/adr/0030-containers.md).

mod call;

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command as Process, ExitCode};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Parser};
use discnice_watcher::process::lives;
use serde_json::{Value, json};

use self::call::Call;
use super::{Cli, Command};
use crate::complaint::one_line;
use crate::{classes, launch};

/// In the environment: the runtime to execute instead of runc.
const RUNTIME: &str = "DISCNICE_RUNTIME";
/// Not a verb of runc's: whether a container with the annotations of a bundle would be started.
const CHECK: &str = "check";
/// What our annotations begin with.
const PREFIX: &str = "io.discnice.";
/// Options of `run` that are limits. Its others are not the container's to give: they execute commands (--only-when) or write
/// files (--report), on the machine and as the user of runc.
const LIMITS: &[&str] = &[
    "at-least",
    "cache",
    "class",
    "disk",
    "disk-iops",
    "disk-read",
    "disk-total",
    "disk-write",
    "estimator",
    "guest",
    "longest-sleep",
    "memory-high",
    "memory-low",
    "meta-ops",
    "net",
    "net-down",
    "net-loopback",
    "net-up",
    "per-child",
    "policy",
    "preset",
    "shortest-sleep",
    "strict",
    "uplink",
    "weight",
    "when",
    "window",
];
/// What the class of a container is called, before the container's name, of which so many characters count.
const CLASS: &str = "container-";
const LONGEST_NAME: usize = 48;
/// What a class that containers share is called, before the name in their annotation: other classes of runc's user are not theirs
/// to join, or to change.
const SHARED: &str = "containers-";
/// How often members of a deleted container are looked for, and how long between.
const LOOKS: u32 = 100;
const APART: Duration = Duration::from_millis(5);
/// A longer file is no container's configuration.
const LONGEST: u64 = 16 << 20;

/// Be an OCI runtime: execute runc, held by the annotations of the container
#[derive(Debug, Args)]
pub struct Oci {
    /// The arguments of runc
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Oci {
    /// Executes runc in this process's place, or as a child where a class is to be removed after it.
    ///
    /// # Errors
    /// One line, which is in runc's log, too: an annotation is wrong. Nothing was started.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let call = Call::of(&self.words);
        let log = call.option("--log").map(PathBuf::from);
        call.run(&self.words).inspect_err(|error| note(log, &format!("{error:#}")))
    }
}

impl Call<'_> {
    fn run(&self, words: &[OsString]) -> anyhow::Result<ExitCode> {
        if self.verb == CHECK {
            held(&annotations(&self.bundle())?, &class_of(CHECK), &["true".into()])?;
            return Ok(ExitCode::SUCCESS);
        }
        let command: Vec<OsString> = [runtime()].into_iter().chain(words.iter().cloned()).collect();
        let annotations = match self.verb {
            "create" | "run" => annotations(&self.bundle())?,
            "exec" => {
                self.bundle_of_running().map_or(Ok(Vec::new()), |bundle| annotations(&bundle))?
            }
            _ => Vec::new(),
        };
        let own = self.container.map(class_of);
        let held = match &own {
            Some(own) if !annotations.is_empty() => Some(held(&annotations, own, &command)?),
            _ => None,
        };
        let ends = self.verb == "delete" || self.verb == "run" && held.is_some();
        let start = || match held {
            Some(run) => run.run(),
            None => Err(anyhow!(
                "cannot execute {}: {}",
                runtime().display(),
                launch::execute(&command, &[])
            )),
        };
        let Some(own) = own.filter(|own| ends && classes::check_name(own.as_ref()).is_ok()) else {
            return start();
        };
        let ended = launch::supervise(|| in_child(start), None)?;
        if let Some(found) = classes::find(&own) {
            remove(&found);
        }
        Ok(ended.repeat())
    }

    /// Where the configuration of the container is that a process is to be added to.
    fn bundle_of_running(&self) -> Option<PathBuf> {
        let mut state = Process::new(runtime());
        let state = state.args(self.before).args(["state", self.container?]).output().ok()?;
        let state: Value = serde_json::from_slice(&state.stdout).ok()?;
        state["bundle"].as_str().map(PathBuf::from)
    }
}

/// Removes a container's class, unless members live on. A killed one may be there for a moment.
fn remove(found: &classes::MappedClass) {
    for _ in 0..LOOKS {
        if found.class.living(lives).next().is_none() {
            // Another command may have been first.
            let _ = found.remove();
            return;
        }
        std::thread::sleep(APART);
    }
}

/// Ends a child; its exit status is the one of the command, or that of an error of ours, which is told.
fn in_child(start: impl FnOnce() -> anyhow::Result<ExitCode>) -> u8 {
    let told = start().map_err(|error| crate::tell!("discnice: {error:#}"));
    let code = told.unwrap_or(ExitCode::from(crate::strict::OURS));
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(crate::strict::OURS)
}

fn runtime() -> OsString {
    env::var_os(RUNTIME).filter(|name| !name.is_empty()).unwrap_or_else(|| "runc".into())
}

/// The name of a container's class.
fn class_of(container: &str) -> String {
    let name: String = container.chars().take(LONGEST_NAME).collect();
    format!("{CLASS}{name}")
}

/// Our annotations of the container in a bundle, without what they begin with.
fn annotations(bundle: &std::path::Path) -> anyhow::Result<Vec<(String, String)>> {
    // runc says what is wrong with a bundle.
    let Ok(file) = File::open(bundle.join("config.json")) else { return Ok(Vec::new()) };
    let Ok(Value::Object(mut config)) = serde_json::from_reader(BufReader::new(file.take(LONGEST)))
    else {
        return Ok(Vec::new());
    };
    let Some(Value::Object(all)) = config.remove("annotations") else { return Ok(Vec::new()) };
    let ours = all
        .into_iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?.to_owned(), value)));
    ours.map(|(key, value)| match value {
        Value::String(text) => Ok((key, text)),
        _ => bail!("annotation {PREFIX}{key}: it is no text; put it in quotes"),
    })
    .collect()
}

/// `run` with those limits for runc.
fn held(
    annotations: &[(String, String)],
    own: &str,
    command: &[OsString],
) -> anyhow::Result<super::run::Run> {
    let mechanism = mechanism(annotations)?;
    let mut words = vec!["run".to_owned(), format!("--mechanism={mechanism}")];
    for (key, value) in annotations {
        let word = match (&**key, &**value) {
            ("strict", "true") => "--strict".to_owned(),
            ("strict", "false") => continue,
            ("strict", _) => bail!(
                "annotation {PREFIX}strict: give true or false; the container was not started"
            ),
            ("class", name) => format!("--class={SHARED}{name}"),
            (key, value) => format!("--{key}={value}"),
        };
        let is_limit = LIMITS.contains(&key.as_str());
        parse(&["run".to_owned(), word.clone()], &["true".into()])
            .and_then(|run| if is_limit { Ok(run) } else { Err(anyhow!("it is no limit")) })
            .with_context(|| format!("annotation {PREFIX}{key}"))
            .context("the container was not started")?;
        words.push(word);
    }
    if !annotations.iter().any(|(key, _)| key == "class") {
        words.push(format!("--class={own}"));
    }
    parse(&words, command).context("the container was not started: its annotations")
}

/// By what the container is held: its programs run without the library, so only their disk traffic is.
fn mechanism(annotations: &[(String, String)]) -> anyhow::Result<&'static str> {
    let other = |key: &str| key.starts_with("net") || key == "meta-ops";
    if let Some((key, _)) = annotations.iter().find(|(key, _)| other(key)) {
        let why = format!(
            "annotation {PREFIX}{key} does not hold: only the disk traffic of containers is limited"
        );
        if annotations.iter().any(|(key, value)| key == "strict" && value == "true") {
            bail!("{why}; the container was not started");
        }
        crate::tell!("discnice: {why}");
    }
    Ok(if discnice_supervisor::probe().is_ok() { "seccomp" } else { "freeze" })
}

fn parse(words: &[String], command: &[OsString]) -> anyhow::Result<super::run::Run> {
    let words = words.iter().map(OsString::from);
    let words = [OsString::from("discnice")].into_iter().chain(words).chain(["--".into()]);
    match Cli::try_parse_from(words.chain(command.iter().cloned())) {
        Ok(Cli { command: Command::Run(run) }) => Ok(run),
        Ok(_) => bail!("it is no limit"),
        Err(error) => Err(anyhow!(one_line(&error))),
    }
}

/// Adds an error to runc's log, in which containerd and docker look for it.
fn note(log: Option<PathBuf>, why: &str) {
    let Some(log) = log else { return };
    let line = json!({ "level": "error", "msg": format!("discnice: {why}") });
    if let Ok(mut log) = OpenOptions::new().append(true).create(true).open(log) {
        let _ = writeln!(log, "{line}");
    }
}

#[cfg(test)]
mod tests;
