//! The work area beside the directory, and the swap.
//!
//! `PARENT/.discnice-refresh-HASH/` holds a marker and the lock; `PARENT/.discnice-refresh-HASH.new/`
//! is the tree that is being built, and after the swap the old tree. The directory itself is
//! therefore complete at every moment, and whatever is found aside is rubbish: the next refresh
//! removes it.
//!
//! The tree is built in the same parent, as a directory that moves to another parent gets a new
//! modification time on xfs.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, StatxAttributes};
use rustix::io::Errno;

use super::error::{Context, RefreshError, Result, printable};
use super::tree::{self, stat};

const MARKER: &CStr = c"made-by-discnice-refresh";
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory to refresh, by its parent.
#[derive(Debug)]
pub struct Place {
    /// The directory that holds it.
    pub parent: OwnedFd,
    /// Its name there.
    pub name: CString,
    /// The directory itself.
    pub dir: OwnedFd,
}

impl Place {
    /// Finds a directory; links in the path are followed, as the paper's refresh is of what the
    /// user means.
    ///
    /// # Errors
    /// Refused: `/`, a mount point, no directory, a parent on another file system.
    pub fn find(path: &Path) -> Result<Self> {
        let shown = || printable(path.as_os_str().as_bytes());
        let refuse = |why: &str| Err(RefreshError::Refused(vec![format!("{}: {why}", shown())]));
        let real = std::fs::canonicalize(path).doing("open", shown)?;
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return refuse("the root directory cannot be refreshed");
        };
        let name = CString::new(name.as_bytes()).unwrap_or_default();
        let parent = rustix::fs::open(above, DIRECTORY, Mode::empty()).doing("open", shown)?;
        let dir = rustix::fs::openat(&parent, &name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
            .doing("open", shown)?;
        let (outer, inner) = (
            stat(parent.as_fd(), c".").doing("look at", shown)?,
            stat(dir.as_fd(), c".").doing("look at", shown)?,
        );
        if inner.has(StatxAttributes::MOUNT_ROOT) || outer.dev != inner.dev {
            return refuse("a mount point or subvolume; refresh the directories inside it");
        }
        Ok(Self { parent, name, dir })
    }
}

/// A locked work area.
#[derive(Debug)]
pub struct Work<'a> {
    place: &'a Place,
    name: CString,
    aside: CString,
    fd: OwnedFd,
}

impl<'a> Work<'a> {
    /// Name of the work area: short, and the same after a crash.
    fn name_for(place: &Place) -> CString {
        let hash = blake3::hash(place.name.as_bytes()).to_hex();
        CString::new(format!(".discnice-refresh-{}", &hash[..16])).unwrap_or_default()
    }

    /// Removes what an interrupted refresh has left; whether there was something.
    ///
    /// # Errors
    /// Refused: another refresh is at work, or the name is taken by something else.
    pub fn recover(place: &'a Place) -> Result<bool> {
        match Self::open(place)? {
            Some(left) => left.remove().map(|()| true),
            None => Ok(false),
        }
    }

    /// Opens and locks an existing work area.
    fn open(place: &'a Place) -> Result<Option<Self>> {
        let name = Self::name_for(place);
        let shown = || printable(name.to_bytes());
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let fd = match rustix::fs::openat(&place.parent, &name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.doing("open", shown)?,
        };
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let line = format!("{}: another refresh is at work", shown());
                return Err(RefreshError::Refused(vec![line]));
            }
            other => other.doing("lock", shown)?,
        }
        if !is_ours(fd.as_fd()).doing("read", shown)? {
            let line = format!("{}: not made by discnice; move it away", shown());
            return Err(RefreshError::Refused(vec![line]));
        }
        let aside = CString::new([name.as_bytes(), b".new"].concat()).unwrap_or_default();
        Ok(Some(Self { place, name: name.clone(), aside, fd }))
    }

    /// Makes a work area, after a test that the file system can swap.
    ///
    /// # Errors
    /// As mkdir(2); refused where renameat2(2) knows no `RENAME_EXCHANGE`.
    pub fn create(place: &'a Place) -> Result<Self> {
        let name = Self::name_for(place);
        let shown = || printable(name.to_bytes());
        rustix::fs::mkdirat(&place.parent, &name, Mode::RWXU)
            .doing("make a work area beside the directory", shown)?;
        let Some(work) = Self::open(place)? else {
            return Err(RefreshError::Changed(shown()));
        };
        match work.furnish() {
            Ok(()) => Ok(work),
            Err(error) => {
                // The first error is the one to tell.
                let _ = work.remove();
                Err(error)
            }
        }
    }

    fn furnish(&self) -> Result<()> {
        let shown = || self.name.to_string_lossy().into_owned();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, MARKER, flags, Mode::RUSR).doing("write", shown)?;
        let pair = [c"one", c"other"];
        for name in pair {
            rustix::fs::mkdirat(&self.fd, name, Mode::RWXU).doing("write", shown)?;
        }
        let [one, other] = pair;
        let swap = rustix::fs::renameat_with(&self.fd, one, &self.fd, other, RenameFlags::EXCHANGE);
        for name in pair {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR).doing("remove", shown)?;
        }
        swap.map_err(|_| {
            let line = ".: this file system cannot swap two directories atomically";
            RefreshError::Refused(vec![line.into()])
        })
    }

    /// Makes and opens the directory in which the new tree is built.
    ///
    /// # Errors
    /// As mkdir(2) and open(2).
    pub fn make_aside(&self) -> Result<OwnedFd> {
        let shown = || self.aside.to_string_lossy().into_owned();
        let parent = &self.place.parent;
        rustix::fs::mkdirat(parent, &self.aside, Mode::RWXU).doing("make", shown)?;
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        rustix::fs::openat(parent, &self.aside, flags, Mode::empty()).doing("open", shown)
    }

    /// Puts all that was written on the disk.
    ///
    /// # Errors
    /// As syncfs(2): also write-back errors of the past.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.fd).doing("write to the disk", || ".".into())
    }

    /// Swaps the directory and the tree aside, and makes sure that the disk knows it.
    ///
    /// # Errors
    /// As renameat2(2); then nothing was swapped.
    pub fn swap(&self) -> Result<()> {
        let Place { parent, name, .. } = self.place;
        rustix::fs::renameat_with(parent, name, parent, &self.aside, RenameFlags::EXCHANGE)
            .doing("swap", || printable(name.to_bytes()))?;
        self.sync()
    }

    /// Gives the tree aside a name that people find; returns the name beside the
    /// directory.
    ///
    /// # Errors
    /// As rename(2).
    pub fn keep_aside(self) -> Result<String> {
        let id = std::process::id();
        let kept =
            [self.place.name.as_bytes(), format!(".before-refresh-{id}").as_bytes()].concat();
        let kept = CString::new(kept).unwrap_or_default();
        let shown = printable(kept.to_bytes());
        rustix::fs::renameat(&self.place.parent, &self.aside, &self.place.parent, &kept)
            .doing("keep the old directory", || shown.clone())?;
        self.remove()?;
        Ok(shown)
    }

    /// Removes the tree aside and the work area. The marker, without which nothing aside is ours,
    /// goes last but one, so that a crash in between leaves something known to be ours.
    ///
    /// # Errors
    /// Of the first member that cannot be removed.
    pub fn remove(self) -> Result<()> {
        let shown = || self.name.to_string_lossy().into_owned();
        for name in [c"one", c"other"] {
            tree::remove(self.fd.as_fd(), name)?;
        }
        if stat(self.fd.as_fd(), MARKER).is_ok() {
            tree::remove(self.place.parent.as_fd(), &self.aside)?;
            rustix::fs::unlinkat(&self.fd, MARKER, AtFlags::empty()).doing("remove", shown)?;
        }
        rustix::fs::unlinkat(&self.place.parent, &self.name, AtFlags::REMOVEDIR)
            .doing("remove", shown)
    }
}

/// Has our marker, or is empty: a crash may have come before the marker or after it was removed.
fn is_ours(dir: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    if stat(dir, MARKER).is_ok() {
        return Ok(true);
    }
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            return Ok(false);
        }
    }
    Ok(true)
}
