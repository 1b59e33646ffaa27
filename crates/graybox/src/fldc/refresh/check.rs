//! What cannot be kept is refused before anything is done.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, StatxAttributes};

use super::error::{Context, Result};
use super::tree::{Cursor, Meta, Tree};

/// Lines shown at most; the rest is counted.
const LINES: usize = 20;

/// One line for each member that could not be kept.
pub fn problems(tree: &Tree, force: bool) -> Vec<String> {
    let root = rustix::process::geteuid().is_root();
    let own = rustix::process::geteuid().as_raw();
    let outside = links_outside(tree);
    let mut lines = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let meta = &node.meta;
        let why = unmovable(meta, index == 0)
            .or_else(|| (!root && meta.uid != own).then_some("belongs to another user"))
            .or_else(|| (!root && is_device(meta)).then_some("a device file, which needs root"))
            .or_else(|| {
                let torn = !force && outside.contains_key(&meta.ino);
                torn.then_some("has other hard links outside; --force separates them")
            });
        if let Some(why) = why {
            lines.push(format!("{}: {why}", tree.display(index)));
        }
    }
    shorten(lines)
}

/// At most so many lines, and how many more there are.
pub fn shorten(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn unmovable(meta: &Meta, is_root: bool) -> Option<&'static str> {
    let reasons = [
        (StatxAttributes::IMMUTABLE, "immutable; chattr -i first"),
        (StatxAttributes::APPEND, "append-only; chattr -a first"),
        (StatxAttributes::ENCRYPTED, "encrypted by the file system"),
        (StatxAttributes::VERITY, "sealed by fs-verity"),
        (StatxAttributes::MOUNT_ROOT, "a mount point; unmount it first"),
    ];
    let found = reasons.iter().find(|(attribute, _)| meta.has(*attribute));
    // Mount points are refused with a better message for the root itself.
    found
        .filter(|(attribute, _)| !(is_root && *attribute == StatxAttributes::MOUNT_ROOT))
        .map(|(_, why)| *why)
}

fn is_device(meta: &Meta) -> bool {
    matches!(meta.kind(), FileType::BlockDevice | FileType::CharacterDevice)
}

/// Inodes with more names than the tree has.
fn links_outside(tree: &Tree) -> HashMap<u64, u32> {
    let mut missing: HashMap<u64, u32> = HashMap::new();
    let linked = |meta: &Meta| meta.nlink > 1 && meta.kind() != FileType::Directory;
    for node in tree.nodes.iter().filter(|node| linked(&node.meta)) {
        *missing.entry(node.meta.ino).or_insert(node.meta.nlink) -= 1;
    }
    missing.retain(|_, left| *left > 0);
    missing
}

/// Bytes and inodes that a copy of the tree takes.
pub fn needs(tree: &Tree) -> (u64, u64) {
    let bytes = tree.nodes.iter().map(|node| node.meta.allocated).sum();
    (bytes, tree.nodes.len() as u64)
}

/// A line if the copy would not fit beside the original.
///
/// # Errors
/// As statvfs(3).
pub fn lack_of_space(tree: &Tree, dir: BorrowedFd<'_>) -> Result<Option<String>> {
    let (bytes, inodes) = needs(tree);
    let space = rustix::fs::fstatvfs(dir).doing("look at the file system", || ".".into())?;
    let free = space.f_bavail * space.f_frsize;
    // One part in 32 for directories, indirect blocks and the journal.
    let wanted = bytes + bytes / 32;
    let units = discnice_units::Bytes::new;
    if wanted > free {
        return Ok(Some(format!(".: needs {} free, has {}", units(wanted), units(free))));
    }
    // File systems that make inodes as needed say 0.
    let short = space.f_files > 0 && space.f_favail < inodes;
    Ok(short.then(|| format!(".: needs {inodes} free inodes, has {}", space.f_favail)))
}

/// Fails if a member is not what it was at the scan.
///
/// # Errors
/// `Changed` with the first such member.
pub fn unchanged(tree: &Tree, root: BorrowedFd<'_>, root_moved: bool) -> Result<()> {
    let mut cursor = Cursor::new(tree, root);
    for (index, node) in tree.nodes.iter().enumerate() {
        let moved = index == 0 && root_moved;
        let same = cursor.stat(index).is_ok_and(|now| node.meta.unchanged(&now, moved));
        if !same {
            return Err(super::error::RefreshError::Changed(tree.display(index)));
        }
    }
    Ok(())
}
