//! Clears a work area, at the end of a refresh as after its interruption at any instruction.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::error::{Context, Result};
use super::marker::{Staged, Touched, WorkFile};
use super::place::Place;
use super::status::stat;
use super::swap::{Settled, Spot};
use super::times;
use super::tree::Tree;
use super::work::Area;

/// Finds the inodes of the directory.
struct Finder<'a> {
    place: &'a Place,
    tree: Tree,
    by_inode: HashMap<u64, usize>,
}

impl<'a> Finder<'a> {
    fn new(place: &'a Place) -> Result<Self> {
        let tree = Tree::scan(place.dir.as_fd(), &|_, _| 0)?;
        let by_inode = tree.nodes.iter().enumerate().map(|(at, node)| (node.meta.ino, at));
        let by_inode = by_inode.collect();
        Ok(Self { place, tree, by_inode })
    }

    /// The directory with this inode.
    fn directory(&self, ino: u64) -> Option<OwnedFd> {
        let index = *self.by_inode.get(&ino)?;
        self.tree.open_directory(self.place.dir.as_fd(), index).ok()
    }

    /// Directory and name of the file with this inode.
    fn file(&self, ino: u64) -> Option<(OwnedFd, CString)> {
        let node = &self.tree.nodes[*self.by_inode.get(&ino)?];
        let dir = self.tree.open_directory(self.place.dir.as_fd(), node.parent).ok()?;
        Some((dir, node.name.clone()))
    }
}

/// Removes the work area with what is not needed of it, puts back what is. Returns the name under
/// which it is kept if another program changed both a file and what it had been exchanged for.
///
/// # Errors
/// As the system calls; what is left is cleared up by the next refresh.
pub fn clear(place: &Place, area: &Area<'_>, force: bool) -> Result<Option<String>> {
    let cannot = || area.shown();
    let mut kept = false;
    let (mut swapped, mut touched) = (Vec::new(), Vec::new());
    let mut finder = None;
    for (name, entry) in area.files().doing("read", cannot)? {
        match entry {
            Some(WorkFile::Making(_)) => area.unlink(&name).doing("clear", cannot)?,
            Some(WorkFile::Touched(before)) => touched.push((name, before)),
            Some(WorkFile::Staged(staged)) => {
                let inside = stat(area.fd(), &name).doing("look at", cannot)?.ino;
                if inside == staged.new {
                    area.unlink(&name).doing("clear", cannot)?;
                } else {
                    swapped.push((name, staged, inside));
                }
            }
            // Made by no refresh.
            None => kept = true,
        }
    }
    if !swapped.is_empty() || !touched.is_empty() {
        let finder = finder.insert(Finder::new(place)?);
        swapped.retain(|(name, staged, inside)| {
            *inside == staged.old || !put_back_foreign(finder, area, name, staged, force)
        });
        restore_times(finder, area, &touched, &swapped);
        for (name, staged, inside) in &swapped {
            kept |= *inside != staged.old || !settle(finder, area, name, staged, force)?;
        }
    }
    if kept {
        return area.keep().map(Some);
    }
    area.remove_if_empty();
    Ok(None)
}

/// Puts a file that another program had made, and an exchange has caught, to where it belongs, unless the copy that is there
/// is in use or was changed.
fn put_back_foreign(
    finder: &Finder<'_>,
    area: &Area<'_>,
    name: &CString,
    staged: &Staged,
    force: bool,
) -> bool {
    let Some((dir, place)) = finder.file(staged.new) else { return false };
    let spot = Spot { dir: dir.as_fd(), name: &place, area, file: name };
    spot.put_back(staged, force).unwrap_or(false)
}

fn restore_times(
    finder: &Finder<'_>,
    area: &Area<'_>,
    touched: &[(CString, Touched)],
    swapped: &[(CString, Staged, u64)],
) {
    let replaced = swapped.iter().map(|(_, staged, _)| (staged.new, staged.old)).collect();
    for (name, before) in touched {
        if let Some(dir) = finder.directory(before.ino) {
            // A time that is not set back is that of the exchange, which did happen.
            let _ = times::restore(dir.as_fd(), before, &replaced);
        }
        let _ = area.unlink(name);
    }
}

/// False if the original has to be kept.
fn settle(
    finder: &Finder<'_>,
    area: &Area<'_>,
    name: &CString,
    staged: &Staged,
    force: bool,
) -> Result<bool> {
    // Without its copy in the directory it has no place to go back to: the copy was removed or
    // replaced, so the original would have been, too, unless it was changed first.
    let found = finder.file(staged.new);
    let (dir, place) = match &found {
        Some((dir, place)) => (dir.as_fd(), place),
        None => (area.fd(), name),
    };
    let spot = Spot { dir, name: place, area, file: name };
    match spot.settle(staged, None, force) {
        Ok(settled) => Ok(settled != Settled::Kept),
        Err(why) => Err(Errno::BUSY).doing("clear", || format!("{}: {why}", area.shown())),
    }
}
