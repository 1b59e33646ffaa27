//! The directory to refresh, by descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::StatxAttributes;

use super::error::{Context, RefreshError, Result, printable};
use super::marker::Identity;
use super::status::{Meta, stat_open};
use super::walk::{open_beneath, open_without_links};

/// A directory to refresh, and the one that holds it.
#[derive(Debug)]
pub struct Place {
    /// The directory that holds it, where the work area is made.
    pub parent: OwnedFd,
    /// Its name there, to name what belongs to it.
    pub name: Vec<u8>,
    /// The directory itself.
    pub dir: OwnedFd,
    /// The directory as it was found.
    pub meta: Meta,
}

impl Place {
    /// Finds a directory. Links on the way to it are followed once, before anything is opened.
    ///
    /// # Errors
    /// Refused: `/`, a symbolic link, a mount point, no directory, a parent on another file
    /// system, another user's directory.
    pub fn find(path: &Path) -> Result<Self> {
        let shown = || printable(path.as_os_str().as_bytes());
        let refuse = |why: &str| Err(RefreshError::Refused(vec![format!("{}: {why}", shown())]));
        let named = std::fs::symlink_metadata(path).doing("open", shown)?;
        let real = std::fs::canonicalize(path).doing("open", shown)?;
        if named.is_symlink() {
            let real = printable(real.as_os_str().as_bytes());
            return refuse(&format!("a symbolic link; refresh {real} itself"));
        }
        if !named.is_dir() {
            return refuse("not a directory; name one");
        }
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return refuse("the root directory cannot be refreshed; name one below it");
        };
        let parent = open_without_links(above.as_os_str().as_bytes()).doing("open", shown)?;
        let outer = stat_open(parent.as_fd()).doing("look at", shown)?;
        let inner = super::status::stat(parent.as_fd(), &cstring(name.as_bytes()));
        let inner = inner.doing("look at", shown)?;
        if inner.has(StatxAttributes::MOUNT_ROOT) || outer.dev != inner.dev {
            return refuse("a mount point or subvolume; refresh the directories inside it");
        }
        let dir = open_beneath(parent.as_fd(), name.as_bytes()).doing("open", shown)?;
        let meta = stat_open(dir.as_fd()).doing("look at", shown)?;
        let me = rustix::process::geteuid();
        if !me.is_root() && meta.uid != me.as_raw() {
            return refuse("belongs to another user");
        }
        Ok(Self { parent, name: name.as_bytes().to_vec(), dir, meta })
    }

    /// What the marker of a work area says of this directory.
    pub fn identity(&self) -> Identity {
        self.meta.identity()
    }
}

/// A name for the kernel; names come from it and have no zero inside.
pub fn cstring(name: &[u8]) -> std::ffi::CString {
    std::ffi::CString::new(name).unwrap_or_default()
}
