//! The place where experiments run: an emulated disk, scratch folders, an unprivileged user.
//!
//! Everything that a lab makes goes with it, also after an error or a stop request.

pub mod cgroup;
pub mod files;
pub mod job;
pub mod left_behind;
pub mod link;
pub mod memory_limit;
pub mod resident;
pub mod sampler;
pub mod scratch;
pub mod swap;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use tempfile::TempDir;

use self::job::Job;
use self::resident::Resident;
use crate::disk::{self, State};
use crate::removal::unless_missing;
use crate::site::Site;

/// A disk that is up, and what belongs to it.
pub struct Lab {
    /// The disk.
    pub disk: State,
    /// The machine as the arguments describe it.
    pub site: Site,
    owns_disk: bool,
    memory: TempDir,
    programs: TempDir,
    folder: PathBuf,
    resident: RefCell<Resident>,
}

impl Lab {
    /// Makes the disk, or takes the one that is up, and folders for the experiment `name`.
    ///
    /// # Errors
    /// No disk can be had; nothing is left behind.
    pub fn open(site: &Site, name: &str) -> anyhow::Result<Self> {
        let (disk, owns_disk) = match disk::running() {
            Ok(disk) => (disk, false),
            Err(_) => (disk::up(&site.wanted()?)?, true),
        };
        let guard = DiskGuard(owns_disk);
        let memory = scratch::make(&scratch::memory(), disk.owner)?;
        let programs = scratch::make(&std::env::temp_dir(), disk.owner)?;
        // The program's own file may lie where the unprivileged user cannot reach it.
        let own = std::env::current_exe().context("cannot find this program's file")?;
        fs::copy(own, programs.path().join("discnice-eval")).context("cannot copy this program")?;
        let folder = disk.mount.join(name);
        // A run that was killed may have left one on a disk that is still up.
        unless_missing(fs::remove_dir_all(&folder), &folder)?;
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        chown(&folder, Some(disk.owner.uid), Some(disk.owner.gid))?;
        std::mem::forget(guard);
        Ok(Self {
            resident: RefCell::new(Resident::new(&disk.mount)),
            disk,
            site: site.clone(),
            owns_disk,
            memory,
            programs,
            folder,
        })
    }

    /// A folder on the disk, the user's.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder in memory, the user's.
    #[must_use]
    pub fn memory(&self) -> &Path {
        self.memory.path()
    }

    /// The disk's loop device.
    ///
    /// # Errors
    /// It has none: the disk is being taken down.
    pub fn device(&self) -> anyhow::Result<&Path> {
        self.disk.loop_device.as_deref().context("the disk has no loop device")
    }

    /// `discnice run` with these arguments, before `command`, as the unprivileged user.
    ///
    /// # Errors
    /// It is not there or cannot limit a command.
    pub fn limited(&self, arguments: &[&str], command: &Command) -> anyhow::Result<Command> {
        let mut limited = self.command(self.site.discnice()?);
        limited.arg("run").args(arguments).arg("--");
        limited.arg(command.get_program()).args(command.get_args());
        Ok(limited)
    }

    /// A command that will run as the unprivileged user, in the experiment's folder.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command_as_root(program);
        command.uid(self.disk.owner.uid).gid(self.disk.owner.gid);
        command
    }

    /// Returns a command for a tool that needs root to start another command as the unprivileged
    /// user.
    fn command_as_root(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("HOME", self.memory())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// A copy of a program that the unprivileged user can reach.
    ///
    /// # Errors
    /// It is not there, or the folder is full.
    pub fn program(&self, file: &Path) -> anyhow::Result<PathBuf> {
        let name = file.file_name().context("a program without a name")?;
        let copy = self.programs.path().join(name);
        fs::copy(file, &copy).with_context(|| format!("cannot copy {}", file.display()))?;
        Ok(copy)
    }

    /// One of our own workloads (`discnice-eval workload`), as the unprivileged user.
    #[must_use]
    pub fn workload(&self, name: &str) -> Command {
        let mut command = self.command(self.programs.path().join("discnice-eval"));
        command.args(["workload", name]);
        command
    }

    /// Runs a job to its end, and holds in memory what its processes are made of as long as the lab is there.
    ///
    /// # Errors
    /// The job fails, or a stop was requested.
    pub fn make_resident(&self, job: Job) -> anyhow::Result<()> {
        let group = job.group();
        let look = || {
            self.resident.borrow_mut().add(group);
            false
        };
        job.finish_unless(look).map(drop)
    }

    /// Runs `prepare` while the disk answers at once; its files are on the platter afterwards.
    ///
    /// # Errors
    /// Those of `prepare`.
    pub fn in_no_time<T>(&self, prepare: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        disk::in_no_time(&self.disk, prepare)
    }

    /// Writes back everything, in emulated time.
    ///
    /// # Errors
    /// As syncfs(2).
    pub fn flush(&self) -> anyhow::Result<()> {
        disk::sync(&self.disk)
    }

    /// Drops the disk's page cache.
    ///
    /// # Errors
    /// The disk is in use.
    pub fn cold(&self) -> anyhow::Result<()> {
        disk::drop_caches(&self.disk)
    }

    /// Removes everything; says what could not be.
    ///
    /// # Errors
    /// The disk could not be taken down.
    pub fn close(mut self) -> anyhow::Result<()> {
        self.remove_all()
    }

    fn remove_all(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.owns_disk) {
            return disk::down();
        }
        unless_missing(fs::remove_dir_all(&self.folder), &self.folder)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.remove_all() {
            eprintln!("{}{error:#}", crate::message::PREFIX);
        }
    }
}

/// Takes the disk down if opening a lab fails half way.
struct DiskGuard(bool);

impl Drop for DiskGuard {
    fn drop(&mut self) {
        if self.0
            && let Err(error) = disk::down()
        {
            eprintln!("{}{error:#}", crate::message::PREFIX);
        }
    }
}
