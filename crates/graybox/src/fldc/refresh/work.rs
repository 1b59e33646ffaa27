//! The work area beside the directory: `PARENT/.discnice-refresh-RANDOM/`, mode 0700, locked, with
//! a marker that says which directory it belongs to. See the module's own documentation for what
//! is proof against what.

use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::error::{Context, RefreshError, Result, printable};
use super::marker::{MARKER_MAX, Marker, WorkFile};
use super::place::{Place, cstring};
use super::status::{Meta, stat, stat_open};

/// What names of work areas begin with; 16 hexadecimal digits follow.
pub const PREFIX: &str = ".discnice-refresh-";
const MARKER: &CStr = c"marker";
/// How often a work area is made anew: another refresh of this user may clear it away between its
/// making and its locking.
const TRIES: u32 = 5;

/// A locked work area.
#[derive(Debug)]
pub struct Area<'a> {
    place: &'a Place,
    name: CString,
    fd: OwnedFd,
    meta: Meta,
}

impl<'a> Area<'a> {
    /// Makes a work area, after a test that the file system can exchange files.
    ///
    /// # Errors
    /// As mkdir(2); refused where renameat2(2) knows no `RENAME_EXCHANGE`.
    pub fn create(place: &'a Place) -> Result<Self> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_create(place) {
                Err(Errno::NOENT | Errno::EXIST | Errno::AGAIN) if tries < TRIES => {}
                other => {
                    let area =
                        other.doing("make a work area beside the directory", || ".".into())?;
                    let able = area.can_exchange();
                    if able.is_err() {
                        area.undo();
                    }
                    return able.map(|()| area);
                }
            }
        }
    }

    fn try_create(place: &'a Place) -> rustix::io::Result<Self> {
        // Keyed by the kernel's random numbers; nothing but a quick start depends on it.
        let random = std::hash::RandomState::new().build_hasher().finish();
        let name = cstring(format!("{PREFIX}{random:016x}").as_bytes());
        rustix::fs::mkdirat(&place.parent, &name, Mode::RWXU)?;
        let area = Self::open(place, &name)?.ok_or(Errno::AGAIN)?;
        rustix::fs::flock(&area.fd, FlockOperation::NonBlockingLockExclusive)?;
        // Gone from its name: cleared away before it was locked.
        stat(place.parent.as_fd(), &name)?;
        let marked = area.mark();
        if marked.is_err() {
            area.undo();
        }
        marked.map(|()| area)
    }

    fn mark(&self) -> rustix::io::Result<()> {
        let (owner, directory) = (self.meta.uid, self.place.identity());
        let marker = Marker { owner, directory, area: self.meta.identity() }.to_string();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, MARKER, flags, Mode::RUSR)?;
        let written = rustix::io::write(&file, marker.as_bytes())?;
        if written != marker.len() {
            return Err(Errno::NOSPC);
        }
        // After a power cut an area that has files has its marker, too.
        rustix::fs::fsync(&file)
    }

    /// Removes a work area that could not be furnished.
    fn undo(&self) {
        for (name, entry) in self.files().unwrap_or_default() {
            if matches!(entry, Some(WorkFile::Making(_))) {
                let _ = self.unlink(&name);
            }
        }
        self.remove_if_empty();
    }

    /// Opens a directory that may be a work area of this user; `None` if it cannot be one: of
    /// another owner, open to others, or on another file system.
    fn open(place: &'a Place, name: &CStr) -> rustix::io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&place.parent, name, flags, Mode::empty())?;
        let meta = stat_open(fd.as_fd())?;
        let ours = meta.uid == rustix::process::geteuid().as_raw()
            && meta.mode & 0o077 == 0
            && meta.dev == place.meta.dev;
        Ok(ours.then(|| Self { place, name: name.to_owned(), fd, meta }))
    }

    fn can_exchange(&self) -> Result<()> {
        let pair = [0, 1].map(|number| cstring(WorkFile::Making(number).to_string().as_bytes()));
        for name in &pair {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&self.fd, name, flags, Mode::RUSR)
                .doing("write", || self.shown())?;
        }
        let [one, other] = &pair;
        let exchanged =
            rustix::fs::renameat_with(&self.fd, one, &self.fd, other, RenameFlags::EXCHANGE);
        for name in &pair {
            self.unlink(name).doing("remove", || self.shown())?;
        }
        exchanged.map_err(|_| {
            let line = ".: this file system cannot exchange two files atomically";
            RefreshError::Refused(vec![line.into()])
        })
    }

    /// Work areas but for `own` that interrupted refreshes of this directory by this user have left, locked.
    ///
    /// # Errors
    /// Refused: another refresh of the directory is at work.
    pub fn left_over(place: &'a Place, own: Option<&Self>) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        let list = Dir::read_from(&place.parent).doing("read", || "..".into())?;
        for entry in list {
            let entry = entry.doing("read", || "..".into())?;
            let name = entry.file_name();
            let is_own = own.is_some_and(|own| name == &*own.name);
            if !is_name(name.to_bytes()) || is_own {
                continue;
            }
            // Links, files and what cannot be opened are not ours.
            let Ok(Some(area)) = Self::open(place, name) else { continue };
            let marked = area.marker();
            let mine = marked.is_some_and(|marker| area.is_marked_by(&marker));
            let locked = rustix::fs::flock(&area.fd, FlockOperation::NonBlockingLockExclusive);
            match locked {
                Err(Errno::WOULDBLOCK) if mine => {
                    let line = ".: another refresh is at work".to_owned();
                    return Err(RefreshError::Refused(vec![line]));
                }
                Err(_) => {}
                Ok(()) if mine => found.push(area),
                // A crash came between the making of the directory and that of its marker.
                Ok(()) if marked.is_none() && own.is_some() => area.remove_if_empty(),
                Ok(()) => {}
            }
        }
        Ok(found)
    }

    fn marker(&self) -> Option<Marker> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, MARKER, flags, Mode::empty()).ok()?;
        let meta = stat_open(file.as_fd()).ok()?;
        if meta.kind() != FileType::RegularFile || meta.uid != self.meta.uid || meta.nlink != 1 {
            return None;
        }
        let mut bytes = [0; MARKER_MAX + 1];
        let length = rustix::io::read(&file, &mut bytes).ok()?;
        Marker::parse(&bytes[..length])
    }

    fn is_marked_by(&self, marker: &Marker) -> bool {
        marker.owner == self.meta.uid
            && marker.area.is_still(&self.meta.identity())
            && marker.directory.is_still(&self.place.identity())
    }

    /// The directory itself.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Its name beside the directory, for people.
    pub fn shown(&self) -> String {
        printable(self.name.to_bytes())
    }

    /// Its files but for the marker; `None` for a name that no refresh gives.
    ///
    /// # Errors
    /// As readdir(3).
    pub fn files(&self) -> rustix::io::Result<Vec<(CString, Option<WorkFile>)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." && name != MARKER {
                found.push((name.to_owned(), WorkFile::parse(name.to_bytes())));
            }
        }
        Ok(found)
    }

    /// Removes a file from it.
    ///
    /// # Errors
    /// As unlink(2).
    pub fn unlink(&self, name: &CStr) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())
    }

    /// Puts all that was written on the disk.
    ///
    /// # Errors
    /// As syncfs(2): also write-back errors of the past.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.fd).doing("write to the disk", || ".".into())
    }

    /// Removes it, if there is nothing but the marker inside.
    pub fn remove_if_empty(&self) {
        if self.files().is_ok_and(|files| files.is_empty()) {
            let marked = self.unlink(MARKER);
            if matches!(marked, Ok(()) | Err(Errno::NOENT)) && self.is_at_its_name() {
                // rmdir(2) takes empty directories only.
                let _ = rustix::fs::unlinkat(&self.place.parent, &self.name, AtFlags::REMOVEDIR);
            }
        }
    }

    fn is_at_its_name(&self) -> bool {
        let now = stat(self.place.parent.as_fd(), &self.name);
        now.is_ok_and(|now| now.identity() == self.meta.identity())
    }

    /// Gives it a name that people find and that no later refresh clears up; returns the name.
    ///
    /// # Errors
    /// As rename(2).
    pub fn keep(&self) -> Result<String> {
        let random = &self.name.to_bytes()[PREFIX.len()..];
        let kept = cstring(&[&*self.place.name, b".kept-by-refresh-", random].concat());
        let shown = printable(kept.to_bytes());
        let parent = &self.place.parent;
        rustix::fs::renameat_with(parent, &self.name, parent, &kept, RenameFlags::NOREPLACE)
            .doing("keep what another program changed", || self.shown())?;
        Ok(shown)
    }
}

/// Returns true if work areas have names like this.
pub fn is_name(name: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    name.strip_prefix(PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == 16 && rest.iter().all(digit))
}
