//! Where we are: the emulated disk that is wanted, the `discnice` program, the unprivileged user.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;

use crate::disk::{self, ProfileName, UpArguments, Wanted};

/// The machine as the arguments describe it.
#[derive(Debug, Clone, Args)]
pub struct Site {
    #[command(flatten)]
    disk: UpArguments,
    /// The discnice program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    discnice: Option<PathBuf>,
    /// A configured source tree for the experiments that compile (a Debian source package)
    #[arg(long, value_name = "DIR")]
    make_source: Option<PathBuf>,
}

/// Shows what is mapped into it.
const OWN_MAPS: &[&str] = &["cat", "/proc/self/maps"];
/// Does nothing.
const NOTHING: &[&str] = &["true"];
/// What is mapped into a regulated program: the library and the class's ledger.
const LIBRARY: &str = "libdiscnice.so";
const SEGMENT: &str = "/SYSV";

impl Site {
    /// This machine with another kind of disk.
    #[must_use]
    pub fn with_disk(&self, kind: ProfileName) -> Self {
        Self { disk: self.disk.clone().of_kind(kind), ..self.clone() }
    }

    /// The disk that is wanted.
    ///
    /// # Errors
    /// No such user.
    pub fn wanted(&self) -> anyhow::Result<Wanted> {
        self.disk.wanted()
    }

    /// The source tree to compile, if one was given.
    #[must_use]
    pub fn make_source(&self) -> Option<&Path> {
        self.make_source.as_deref()
    }

    /// Why no emulated disk can be had.
    #[must_use]
    pub fn disk_lack(&self) -> Option<String> {
        let wanted = match self.wanted() {
            Ok(wanted) => wanted,
            Err(error) => return Some(format!("{error:#}")),
        };
        if disk::running().is_ok() {
            return None;
        }
        disk::requirements(wanted.size).err().map(|error| format!("{error:#}"))
    }

    /// The `discnice` program, if it is there, can limit a command and can be run by the user.
    ///
    /// # Errors
    /// What is lacking.
    pub fn discnice(&self) -> anyhow::Result<PathBuf> {
        let program = match &self.discnice {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("cannot find this program's file")?
                .with_file_name("discnice"),
        };
        if !program.is_file() {
            bail!("there is no {}; build it or give --discnice PATH", program.display());
        }
        let program = program.canonicalize().context("cannot find the discnice program")?;
        let maps = self.try_run(&program, &["run", "--disk", "unlimited"], OWN_MAPS)?;
        if !(maps.contains(LIBRARY) && maps.contains(SEGMENT)) {
            bail!(
                "{} leaves its command unregulated; {} doctor tells why",
                program.display(),
                program.display()
            );
        }
        Ok(program)
    }

    /// Why `discnice` cannot be polite without numbers; `None` if it can.
    #[must_use]
    pub fn polite_lack(&self) -> Option<String> {
        let tried = self.discnice().and_then(|program| self.try_run(&program, &["run"], NOTHING));
        tried.err().map(|error| format!("{error:#}"))
    }

    /// Why `discnice` cannot report its predictions; `None` if it can.
    #[must_use]
    pub fn prediction_lack(&self) -> Option<String> {
        let name = format!("discnice-eval-probe-{}.json", std::process::id());
        let report = std::env::temp_dir().join(name);
        let name = report.to_string_lossy();
        let arguments = ["run", "--disk", "unlimited", "--estimator", "predict", "--report", &name];
        let tried = self.discnice().and_then(|program| self.try_run(&program, &arguments, NOTHING));
        // It is there only if the option is.
        let _ = std::fs::remove_file(&report);
        tried.err().map(|error| format!("{error:#}"))
    }

    /// What `discnice ARGUMENTS -- COMMAND` prints as the user under test, if it succeeds.
    fn try_run(
        &self,
        program: &Path,
        arguments: &[&str],
        tried: &[&str],
    ) -> anyhow::Result<String> {
        let owner = self.wanted()?.owner;
        let mut command = Command::new(program);
        command.args(arguments).arg("--").args(tried).current_dir("/").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(owner.uid).gid(owner.gid);
        }
        let output = command.output().with_context(|| {
            let (uid, program) = (owner.uid, program.display());
            format!("user {uid} cannot run {program}; install it outside of private folders")
        })?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let why = complaint.lines().next().unwrap_or("it says nothing");
            bail!("{} {} fails: {why}", program.display(), arguments.join(" "));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
