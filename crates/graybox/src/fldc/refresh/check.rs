//! Which files are to be rewritten, and whether there is room for them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, StatxAttributes};

use super::error::{Context, Result};
use super::left::Why;
use super::status::Meta;
use super::tree::Tree;

/// Members of a tree by what is to be done with them.
#[derive(Debug, Default)]
pub struct Plan {
    /// Regular files to rewrite, in the order of the tree.
    pub rewrite: Vec<usize>,
    /// What is left as it is, and why. Links, FIFOs, sockets and device files have no contents to
    /// rewrite: they stay where they are without a word.
    pub left: Vec<(usize, Why)>,
}

/// Decides for each member of the tree. Mounts hold on to the paths in `mounted`.
pub fn plan(tree: &Tree, mounted: &HashSet<PathBuf>, force: bool) -> Plan {
    let linked = linked(tree);
    let mut plan = Plan::default();
    plan.left.extend(tree.unread.iter().map(|(index, error)| (*index, Why::Failed(*error))));
    for (index, node) in tree.nodes.iter().enumerate().skip(1) {
        let meta = &node.meta;
        let why = match meta.kind() {
            FileType::Directory if meta.has(StatxAttributes::MOUNT_ROOT) => {
                Some("a mount point; refresh it by itself")
            }
            // On btrfs a subvolume is no mount point.
            FileType::Directory if meta.dev != tree.nodes[0].meta.dev => {
                Some("a subvolume; refresh the directories inside it")
            }
            FileType::RegularFile => {
                let separable = match linked.get(&meta.ino) {
                    _ if meta.nlink == 1 => None,
                    Some(1) if force => None,
                    Some(1) => Some("has other hard links outside; --force separates them"),
                    // Copies of each name would no longer be one file.
                    _ => Some("has several names; it lies where it lay"),
                };
                unmovable(meta)
                    .or_else(|| of_directory(tree, index))
                    .or_else(|| of_mounts(tree, index, mounted))
                    .or(separable)
            }
            _ => continue,
        };
        match why {
            Some(why) => plan.left.push((index, Why::Property(why))),
            None if meta.kind() == FileType::RegularFile => plan.rewrite.push(index),
            None => {}
        }
    }
    plan
}

/// At most so many lines of one kind are shown.
pub fn shorten(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        let more = lines.len() - most;
        lines.truncate(most);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn unmovable(meta: &Meta) -> Option<&'static str> {
    let me = rustix::process::geteuid();
    if !me.is_root() && meta.uid != me.as_raw() {
        return Some("belongs to another user");
    }
    let reasons = [
        (StatxAttributes::IMMUTABLE, "immutable; chattr -i first"),
        (StatxAttributes::APPEND, "append-only; chattr -a first"),
        (StatxAttributes::ENCRYPTED, "encrypted by the file system"),
        (StatxAttributes::VERITY, "sealed by fs-verity"),
        (StatxAttributes::MOUNT_ROOT, "a mount point; unmount it first"),
    ];
    reasons.iter().find(|(attribute, _)| meta.has(*attribute)).map(|(_, why)| *why)
}

/// Why files in the directory of this member cannot be exchanged.
fn of_directory(tree: &Tree, index: usize) -> Option<&'static str> {
    let me = rustix::process::geteuid();
    let meta = &tree.nodes[tree.nodes[index].parent].meta;
    if !me.is_root() && meta.uid != me.as_raw() {
        Some("in another user's directory")
    } else if !me.is_root() && meta.mode & 0o300 != 0o300 {
        Some("in a directory that is not writable")
    } else {
        let closed = meta.has(StatxAttributes::IMMUTABLE) || meta.has(StatxAttributes::APPEND);
        closed.then_some("in an immutable or append-only directory")
    }
}

/// Why a file to which mounts hold on is not exchanged.
fn of_mounts(tree: &Tree, index: usize, mounted: &HashSet<PathBuf>) -> Option<&'static str> {
    let path = tree.path(index);
    let is_mounted = mounted.contains(Path::new(OsStr::from_bytes(&path)));
    is_mounted.then_some("mounted elsewhere, as in a container")
}

/// Names that the tree has of each inode with several names anywhere.
fn linked(tree: &Tree) -> HashMap<u64, u32> {
    let mut names: HashMap<u64, u32> = HashMap::new();
    let linked = |meta: &Meta| meta.nlink > 1 && meta.kind() != FileType::Directory;
    for node in tree.nodes.iter().filter(|node| linked(&node.meta)) {
        let of_inode = names.entry(node.meta.ino).or_default();
        *of_inode = of_inode.saturating_add(1);
    }
    names
}

/// Bytes that copies of these members take.
pub fn bytes(tree: &Tree, members: &[usize]) -> u64 {
    members.iter().map(|index| tree.nodes[*index].meta.allocated).sum()
}

/// A line if the copies would not fit beside the originals.
///
/// # Errors
/// As statvfs(3).
pub fn lack_of_space(
    tree: &Tree,
    members: &[usize],
    dir: BorrowedFd<'_>,
) -> Result<Option<String>> {
    let (bytes, inodes) = (bytes(tree, members), members.len() as u64);
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
