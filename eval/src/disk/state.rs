//! Keeps the disk's state in a directory of root's, closed to all other users.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use discnice_units::Bytes;
use serde::{Deserialize, Serialize};

use super::filesystem::IMAGE_NAME;
use super::profile::ProfileName;
use crate::proc::ProcessId;
use crate::removal::unless_missing;

const STATE_DIRECTORY: &str = "/run/discnice-eval";

/// The files and folders of the state directory.
#[derive(Debug, Clone)]
pub struct Places {
    root: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { root: STATE_DIRECTORY.into() }
    }
}

impl Places {
    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Mount point of the FUSE file system.
    #[must_use]
    pub fn fuse(&self) -> PathBuf {
        self.root.join("fuse")
    }

    /// The image that the loop device uses.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.fuse().join(IMAGE_NAME)
    }

    /// Socket of the serving process.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join("control")
    }

    /// What the serving process has to complain about.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    fn record(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Makes the directory, or accepts an existing one that only root can have made.
    ///
    /// # Errors
    /// It cannot be made, or it belongs to another user or is open to others.
    pub fn create(&self) -> anyhow::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.root) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.check()?,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {}", self.root.display()));
            }
        }
        match fs::create_dir(self.fuse()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(error).context("cannot make the FUSE mount point")
            }
            _ => Ok(()),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let found = fs::symlink_metadata(&self.root)?;
        if !found.is_dir() || found.uid() != 0 || found.mode() & 0o077 != 0 {
            bail!(
                "{} is not a directory of root's with mode 700; look at it and remove it",
                self.root.display()
            );
        }
        Ok(())
    }

    /// The recorded disk; `None` without one, or where the record cannot be read (a wreck).
    #[must_use]
    pub fn load(&self) -> Option<State> {
        self.check().ok()?;
        serde_json::from_slice(&fs::read(self.record()).ok()?).ok()
    }

    /// Replaces the record in one step.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn store(&self, state: &State) -> anyhow::Result<()> {
        let new = self.root.join("state.json.new");
        fs::write(&new, serde_json::to_vec_pretty(state)?)
            .and_then(|()| fs::rename(&new, self.record()))
            .context("cannot record the disk's state")
    }

    /// Removes the directory and what is known to be in it; nothing else.
    ///
    /// # Errors
    /// Something unknown is in it, or it is still mounted on.
    pub fn remove(&self) -> anyhow::Result<()> {
        if fs::symlink_metadata(&self.root).is_err() {
            return Ok(());
        }
        self.check()?;
        for file in [self.socket(), self.log(), self.record(), self.root.join("state.json.new")] {
            unless_missing(fs::remove_file(&file), &file)?;
        }
        for directory in [self.fuse(), self.root.clone()] {
            unless_missing(fs::remove_dir(&directory), &directory)?;
        }
        Ok(())
    }
}

/// A disk that is up, or on its way up or down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The serving process.
    pub server: ProcessId,
    /// The loop device, once attached, such as `/dev/loop0`.
    pub loop_device: Option<PathBuf>,
    /// Where its file system is, or will be, mounted.
    pub mount: PathBuf,
    /// Whether the mount point was made for it and is to be removed with it.
    pub made_mount_point: bool,
    /// Owner of the file system's root directory.
    pub owner: Owner,
    /// Which disk.
    pub profile: ProfileName,
    /// Bytes.
    pub size: u64,
    /// I/O scheduler asked for.
    pub scheduler: String,
    /// Read-ahead asked for, in KiB.
    pub read_ahead_kb: u64,
}

impl State {
    /// Profile, size, scheduler and read-ahead: what distinguishes two disks.
    #[must_use]
    pub fn in_words(&self) -> String {
        in_words(self.profile, self.size, &self.scheduler, self.read_ahead_kb)
    }
}

/// One sentence without a full stop, the same for the same disk.
pub(super) fn in_words(
    profile: ProfileName,
    size: u64,
    scheduler: &str,
    read_ahead_kb: u64,
) -> String {
    let profile = format!("{profile:?}").to_lowercase();
    let (size, read_ahead) = (Bytes::new(size), Bytes::new(read_ahead_kb * 1024));
    format!("emulated {profile} of {size}, scheduler {scheduler}, read-ahead {read_ahead}")
}

/// An unprivileged user, by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}
