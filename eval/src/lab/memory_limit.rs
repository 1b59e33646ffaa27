//! A control group with a memory limit, which makes the page cache of what runs in it small. Needs
//! root; the programs in it do not.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use discnice_units::Bytes;

use super::Lab;
use super::job::Job;

const NAME: &str = "discnice-eval-memory";

/// A control group; removed when dropped, after its processes ended.
pub struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// Makes it.
    ///
    /// # Errors
    /// The kernel has no control group for memory, or refuses the limit.
    pub fn new(limit: Bytes) -> anyhow::Result<Self> {
        let (parent, file) = parent()?;
        let folder = parent.join(NAME);
        if !folder.is_dir() {
            fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let group = Self { folder };
        group.set(file, &limit.get().to_string())?;
        Ok(group)
    }

    /// Starts a shell script, with `arguments` as $1, $2, …, that waits until it is in the group.
    ///
    /// # Errors
    /// It cannot be started or put into the group.
    pub fn start(&self, lab: &Lab, script: &str, arguments: &[&str]) -> anyhow::Result<Job> {
        let mut shell = lab.command("sh");
        shell.args(["-c", &format!("read go && {script}"), "sh"]).args(arguments);
        let mut job = Job::start(shell.stdin(Stdio::piped()))?;
        self.set("cgroup.procs", &job.group().to_string())?;
        let mut input = job.take_input().context("the shell has no input")?;
        std::io::Write::write_all(&mut input, b"go\n").context("the shell does not listen")?;
        Ok(job)
    }

    /// Starts a command in the group; it replaces the process that entered the group.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn execute(&self, lab: &Lab, command: &Command) -> anyhow::Result<Job> {
        let words: Option<Vec<&str>> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(OsStr::to_str)
            .collect();
        self.start(lab, "exec \"$@\"", &words.context("the command is no text")?)
    }

    fn set(&self, file: &str, value: &str) -> anyhow::Result<()> {
        let file = self.folder.join(file);
        fs::write(&file, value)
            .with_context(|| format!("the kernel refuses {value} for {}", file.display()))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A daemon that the product started goes on outside, until it ends by itself.
        let left = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        if let Some(parent) = self.folder.parent() {
            for process in left.lines() {
                // It may have ended meanwhile.
                let _ = fs::write(parent.join("cgroup.procs"), process);
            }
        }
        super::cgroup::remove(&self.folder);
    }
}

/// The group that a killed run has left, if there is one.
#[must_use]
pub fn left_behind() -> Option<PathBuf> {
    let folder = parent().ok()?.0.join(NAME);
    folder.is_dir().then_some(folder)
}

/// Why a memory limit cannot be had; `None` if it can.
#[must_use]
pub fn lack() -> Option<String> {
    parent().err().map(|error| format!("{error:#}"))
}

/// Where groups are made, and the file that takes a limit.
fn parent() -> anyhow::Result<(PathBuf, &'static str)> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("memory/memory.limit_in_bytes").exists() {
        return Ok((root.join("memory"), "memory.limit_in_bytes"));
    }
    let delegated = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
    if delegated.split_whitespace().any(|controller| controller == "memory") {
        return Ok((root.into(), "memory.max"));
    }
    bail!("no control group for memory (neither version 1 nor an enabled controller)")
}
