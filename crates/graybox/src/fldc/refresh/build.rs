//! Builds the new tree aside, and checks it against the old one.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::content::{self, Hash};
use super::error::{Context, RefreshError, Result};
use super::meta::{self, Location, open_quietly};
use super::tree::{Cursor, Meta, Tree};

/// Told after each member: bytes copied or checked so far.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// Copies one tree into another root.
struct Builder<'a> {
    tree: &'a Tree,
    from: Cursor<'a>,
    to: Cursor<'a>,
    new_root: BorrowedFd<'a>,
    /// First copied member of each inode with several names.
    linked: HashMap<u64, usize>,
    hashes: Vec<Option<Hash>>,
}

/// Copies all members of `tree`, which lies at `old_root`, into the empty directory `new_root`,
/// in the order of the list; returns the hashes of what was read of regular files.
///
/// # Errors
/// Of the first member that could not be copied or kept in every respect.
pub fn build<'a>(
    tree: &'a Tree,
    old_root: BorrowedFd<'a>,
    new_root: BorrowedFd<'a>,
    progress: Progress<'_>,
) -> Result<Vec<Option<Hash>>> {
    let mut builder = Builder {
        tree,
        from: Cursor::new(tree, old_root),
        to: Cursor::new(tree, new_root),
        new_root,
        linked: HashMap::new(),
        hashes: vec![None; tree.nodes.len()],
    };
    meta::copy_flags(old_root, new_root).doing("keep the flags of it", || ".".into())?;
    let mut bytes = 0;
    for index in 1..tree.nodes.len() {
        builder.member(index).doing("copy", || tree.display(index))?;
        bytes += tree.nodes[index].meta.allocated;
        progress(bytes);
    }
    // Contents change a directory's times, and its mode may forbid them.
    for index in (0..tree.nodes.len()).rev() {
        if tree.nodes[index].meta.kind() == FileType::Directory {
            builder.carry(index).doing("keep what belongs to it", || tree.display(index))?;
        }
    }
    Ok(builder.hashes)
}

impl Builder<'_> {
    fn member(&mut self, index: usize) -> std::io::Result<()> {
        let node = &self.tree.nodes[index];
        let kind = node.meta.kind();
        if kind == FileType::Directory {
            rustix::fs::mkdirat(self.to.directory_of(index)?, &node.name, Mode::RWXU)?;
            return Ok(self.flags_of_directory(index)?);
        }
        if node.meta.nlink > 1
            && let Some(first) = self.linked.get(&node.meta.ino).copied()
        {
            self.hashes[index] = self.hashes[first];
            return Ok(self.link(index, first)?);
        }
        match kind {
            FileType::RegularFile => self.regular(index)?,
            FileType::Symlink => {
                let target =
                    rustix::fs::readlinkat(self.from.directory_of(index)?, &node.name, Vec::new())?;
                rustix::fs::symlinkat(&target, self.to.directory_of(index)?, &node.name)?;
            }
            special => {
                let (major, minor) = node.meta.rdev;
                let device = rustix::fs::makedev(major, minor);
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(
                    self.to.directory_of(index)?,
                    &node.name,
                    special,
                    mode,
                    device,
                )?;
            }
        }
        self.linked.insert(node.meta.ino, index);
        Ok(self.carry(index)?)
    }

    fn regular(&mut self, index: usize) -> std::io::Result<()> {
        let node = &self.tree.nodes[index];
        let location = Location { dir: self.from.directory_of(index)?, name: &node.name };
        let from = File::from(open_quietly(location)?);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let to = rustix::fs::openat(self.to.directory_of(index)?, &node.name, flags, mode)?;
        meta::copy_flags(from.as_fd(), to.as_fd())?;
        self.hashes[index] = Some(content::copy(&from, &File::from(to), node.meta.size)?);
        Ok(())
    }

    fn flags_of_directory(&mut self, index: usize) -> rustix::io::Result<()> {
        let name = &self.tree.nodes[index].name;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = rustix::fs::openat(self.from.directory_of(index)?, name, flags, Mode::empty())?;
        let to = rustix::fs::openat(self.to.directory_of(index)?, name, flags, Mode::empty())?;
        meta::copy_flags(from.as_fd(), to.as_fd())
    }

    fn link(&mut self, index: usize, first: usize) -> rustix::io::Result<()> {
        let parent = self.tree.nodes[first].parent;
        let source = self.tree.open_directory(self.new_root, parent)?;
        let (old, new) = (&self.tree.nodes[first].name, &self.tree.nodes[index].name);
        rustix::fs::linkat(source, old, self.to.directory_of(index)?, new, AtFlags::empty())
    }

    /// Owner, attributes, mode, times.
    fn carry(&mut self, index: usize) -> rustix::io::Result<()> {
        let node = &self.tree.nodes[index];
        let from = Location { dir: self.from.directory_of(index)?, name: &node.name };
        let to = Location { dir: self.to.directory_of(index)?, name: &node.name };
        meta::copy(from, to, &node.meta)
    }
}

/// Reads the new tree back from the disk and compares.
///
/// # Errors
/// `Differs` with the first member that is not as the original.
pub fn verify(
    tree: &Tree,
    old_root: BorrowedFd<'_>,
    new_root: BorrowedFd<'_>,
    hashes: &[Option<Hash>],
    progress: Progress<'_>,
) -> Result<()> {
    let (mut from, mut to) = (Cursor::new(tree, old_root), Cursor::new(tree, new_root));
    let names = names_inside(tree);
    let mut bytes = 0;
    for (index, node) in tree.nodes.iter().enumerate() {
        let mut check = || -> std::io::Result<bool> {
            let from = Location { dir: from.directory_of(index)?, name: &node.name };
            let to = Location { dir: to.directory_of(index)?, name: &node.name };
            let content = match &hashes[index] {
                Some(hash) => {
                    content::hash(&File::from(open_quietly(to)?), node.meta.size)? == *hash
                }
                None => node.meta.kind() != FileType::Symlink || target(from)? == target(to)?,
            };
            // Names outside, which --force gives up, are no names of the copy.
            let linked = names.get(&node.meta.ino).is_none_or(|names| {
                super::tree::stat(to.dir, to.name).is_ok_and(|now| now.nlink == *names)
            });
            Ok(content && linked && meta::same(from, to, &node.meta)?)
        };
        if !check().doing("check the copy", || tree.display(index))? {
            return Err(RefreshError::Differs(tree.display(index)));
        }
        bytes += node.meta.allocated;
        progress(bytes);
    }
    Ok(())
}

/// How many names each file with several of them has in the tree.
fn names_inside(tree: &Tree) -> HashMap<u64, u32> {
    let mut names = HashMap::new();
    for meta @ Meta { ino, nlink, .. } in tree.nodes.iter().map(|node| node.meta) {
        if nlink > 1 && meta.kind() != FileType::Directory {
            *names.entry(ino).or_insert(0) += 1;
        }
    }
    names
}

fn target(location: Location<'_>) -> rustix::io::Result<std::ffi::CString> {
    rustix::fs::readlinkat(location.dir, location.name, Vec::new())
}
