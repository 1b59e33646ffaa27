//! Work areas of the first format. Its refresh exchanged the whole directory:
//! `.discnice-refresh-HASH` with an empty marker, and the tree that was built, or the old one, in
//! `.discnice-refresh-HASH.new`.
//!
//! Only their names say what belongs together. So they are cleared up where no other user can have
//! made or renamed them, and left alone everywhere else.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, StatxAttributes};
use rustix::io::Errno;

use super::place::{Place, cstring};
use super::status::{Meta, stat, stat_open};
use super::tree::{Cursor, Tree};
use super::walk::open_beneath;
use super::work::PREFIX;

const MARKER: &CStr = c"made-by-discnice-refresh";

/// What was found of an old refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A work area, which is removed.
    ClearedUp,
    /// A work area that is not safely known to be one, by name.
    Left(String),
}

/// Clears up what an interrupted refresh of an old version has left, if it is safe to.
pub fn recover(place: &Place) -> Found {
    let hash = blake3::hash(&place.name).to_hex();
    let name = cstring(format!("{PREFIX}{}", &hash[..16]).as_bytes());
    let found = match stat(place.parent.as_fd(), &name) {
        Err(Errno::NOENT) => return Found::Nothing,
        _ => checked(place, &name),
    };
    let cleared = found.is_some_and(|(fd, marked)| remove(place, &name, &fd, marked).is_ok());
    if cleared { Found::ClearedUp } else { Found::Left(name.to_string_lossy().into_owned()) }
}

/// Returns true if only this user can have made entries of a directory.
fn is_private(meta: &Meta) -> bool {
    meta.uid == rustix::process::geteuid().as_raw() && meta.mode & 0o022 == 0
}

/// The work area, locked, and whether it has a marker; `None` if any check fails.
fn checked(place: &Place, name: &CStr) -> Option<(OwnedFd, bool)> {
    let fd = open_beneath(place.parent.as_fd(), name.to_bytes()).ok()?;
    if !is_private(&stat_open(place.parent.as_fd()).ok()?)
        || !is_private(&stat_open(fd.as_fd()).ok()?)
    {
        return None;
    }
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).ok()?;
    let marker = stat(fd.as_fd(), MARKER).ok();
    let genuine = |meta: &Meta| meta.kind() == FileType::RegularFile && meta.size == 0;
    if marker.as_ref().is_some_and(|marker| !genuine(marker)) {
        return None;
    }
    for entry in Dir::read_from(&fd).ok()? {
        let entry = entry.ok()?;
        let known = [c".", c"..", c"one", c"other", MARKER].contains(&entry.file_name());
        if !known {
            return None;
        }
    }
    Some((fd, marker.is_some()))
}

fn remove(place: &Place, name: &CStr, fd: &OwnedFd, marked: bool) -> rustix::io::Result<()> {
    let parent = place.parent.as_fd();
    if marked {
        let aside = cstring(&[name.to_bytes(), b".new"].concat());
        match stat(parent, &aside) {
            Err(Errno::NOENT) => {}
            Ok(meta)
                if meta.uid == place.meta.uid
                    || meta.uid == rustix::process::geteuid().as_raw() =>
            {
                remove_tree(parent, &aside)?;
            }
            _ => return Err(Errno::PERM),
        }
    }
    for pair in [c"one", c"other"] {
        match rustix::fs::unlinkat(fd, pair, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => {}
            other => other?,
        }
    }
    if marked {
        rustix::fs::unlinkat(fd, MARKER, AtFlags::empty())?;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes the tree `name` in `dir`, whatever its permissions, without crossing links or mounts.
fn remove_tree(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    let root = open_to_remove(dir, name)?;
    let (tree, mut cursor);
    loop {
        // Closed directories hide what is in them until they are opened up.
        let seen = Tree::scan(root.as_fd(), &|_, _| 0).map_err(|_| Errno::ACCESS)?;
        if seen.unread.is_empty() {
            tree = seen;
            break;
        }
        for (index, _) in &seen.unread {
            let node = &seen.nodes[*index];
            let parent = seen.open_directory(root.as_fd(), node.parent)?;
            open_to_remove(parent.as_fd(), &node.name)?;
        }
    }
    if tree.nodes[1..].iter().any(|node| node.meta.has(StatxAttributes::MOUNT_ROOT)) {
        return Err(Errno::BUSY);
    }
    cursor = Cursor::new(&tree, root.as_fd());
    for index in (1..tree.nodes.len()).rev() {
        let node = &tree.nodes[index];
        let directory = node.meta.kind() == FileType::Directory;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let parent = cursor.directory_of(index)?;
        rustix::fs::fchmod(parent, Mode::RWXU)?;
        rustix::fs::unlinkat(parent, &node.name, flags)?;
    }
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
}

/// Opens a directory after giving this user all rights to it.
fn open_to_remove(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    match open_beneath(dir, name.to_bytes()) {
        Err(Errno::ACCESS) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let closed = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            let path: CString = cstring(
                format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&closed)).as_bytes(),
            );
            rustix::fs::chmod(path, Mode::RWXU)?;
            open_beneath(dir, name.to_bytes())
        }
        other => other,
    }
}
