//! A directory tree as a list, and walking to its members by descriptors, so that trees deeper
//! than `PATH_MAX` and names that are not UTF-8 are nothing special.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, StatxAttributes};
use rustix::io::Errno;

use super::error::{Context, Result, printable};

use super::status::{Meta, stat, stat_open};
use super::walk::open_beneath;

/// A member of a tree.
#[derive(Debug)]
pub struct Node {
    /// Index of its directory; the root's is its own.
    pub parent: usize,
    /// Name in that directory; `.` for the root.
    pub name: CString,
    /// Metadata as found by the scan.
    pub meta: Meta,
}

impl Node {
    /// Returns true if it may have members of its own.
    pub fn is_directory(&self) -> bool {
        self.meta.kind() == FileType::Directory
    }
}

/// The members of a directory tree: each directory before what it contains, the contents of one
/// directory in a row. Node 0 is the root.
#[derive(Debug)]
pub struct Tree {
    /// All members.
    pub nodes: Vec<Node>,
    /// Directories that could not be read, and why; their contents are no members. Also members of which nothing is known, as
    /// of a mount that nothing serves any more; they are of no kind.
    pub unread: Vec<(usize, Errno)>,
}

/// The rank of a member, by its path from the root on, within its directory: the lesser is
/// written first.
pub type RankOf<'a> = &'a dyn Fn(&[u8], &Meta) -> u64;

impl Tree {
    /// Lists a tree. Within each directory files come by rank, then directories by name.
    /// Does not descend into mount points, subvolumes and other refreshes' work areas; they are listed. What vanishes meanwhile is no member.
    ///
    /// # Errors
    /// If the root cannot be read.
    pub fn scan(root: BorrowedFd<'_>, rank: RankOf<'_>) -> Result<Self> {
        let meta = stat_open(root).doing("look at it", || ".".into())?;
        let node = Node { parent: 0, name: c".".into(), meta };
        let mut tree = Self { nodes: vec![node], unread: Vec::new() };
        let mut at = 0;
        while at < tree.nodes.len() {
            let meta = &tree.nodes[at].meta;
            let elsewhere = meta.has(StatxAttributes::MOUNT_ROOT)
                || meta.dev != tree.nodes[0].meta.dev
                || super::work::is_name(tree.nodes[at].name.to_bytes());
            let enter = at == 0 || !elsewhere;
            if meta.kind() == FileType::Directory && enter {
                match tree.scan_directory(root, at, rank) {
                    Ok(()) => {}
                    Err(error) if at == 0 => return Err(error).doing("read", || ".".into()),
                    Err(error) => tree.unread.push((at, error)),
                }
            }
            at += 1;
        }
        Ok(tree)
    }

    fn scan_directory(
        &mut self,
        root: BorrowedFd<'_>,
        at: usize,
        rank: RankOf<'_>,
    ) -> rustix::io::Result<()> {
        let dir = self.open_directory(root, at)?;
        let (first, mut closed) = (self.nodes.len(), Vec::new());
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match stat(dir.as_fd(), name) {
                Ok(meta) => self.nodes.push(Node { parent: at, name: name.to_owned(), meta }),
                Err(Errno::NOENT) => {}
                Err(error) => closed.push((name.to_owned(), error)),
            }
        }
        let ranks: HashMap<CString, u64> = (first..self.nodes.len())
            .map(|index| {
                let node = &self.nodes[index];
                (node.name.clone(), rank(&self.path(index), &node.meta))
            })
            .collect();
        self.nodes[first..].sort_by(|one, other| {
            let key = |node: &Node| {
                let directory = node.meta.kind() == FileType::Directory;
                (directory, if directory { 0 } else { ranks[&node.name] })
            };
            key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
        });
        for (name, error) in closed {
            self.unread.push((self.nodes.len(), error));
            self.nodes.push(Node { parent: at, name, meta: Meta::default() });
        }
        Ok(())
    }

    /// Path of a member from the root on, for people.
    pub fn display(&self, index: usize) -> String {
        match index {
            0 => ".".into(),
            _ => printable(&self.path(index)),
        }
    }

    /// Path of a member from the root on; empty for the root.
    pub fn path(&self, mut index: usize) -> Vec<u8> {
        let mut names = Vec::new();
        while index != 0 {
            names.push(self.nodes[index].name.as_bytes());
            index = self.nodes[index].parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Opens a directory of the tree below `root`. Neither links nor mounts are crossed.
    ///
    /// # Errors
    /// As openat2(2); `ESTALE` if another directory is there by now.
    pub fn open_directory(
        &self,
        root: BorrowedFd<'_>,
        index: usize,
    ) -> rustix::io::Result<OwnedFd> {
        /// Longest path to hand to the kernel at once, below `PATH_MAX`.
        const CHUNK: usize = 3072;
        let path = self.path(index);
        let mut fd = open_beneath(root, b".")?;
        let mut rest = path.as_slice();
        while !rest.is_empty() {
            let cut = match rest.len() {
                short if short <= CHUNK => short,
                _ => rest[..CHUNK].iter().rposition(|byte| *byte == b'/').unwrap_or(CHUNK),
            };
            fd = open_beneath(fd.as_fd(), &rest[..cut])?;
            rest = rest.get(cut + 1..).unwrap_or_default();
        }
        let same = stat_open(fd.as_fd())?.identity() == self.nodes[index].meta.identity();
        if same { Ok(fd) } else { Err(Errno::STALE) }
    }
}

/// Keeps the directory of the last member open, as the next one mostly is its neighbour.
#[derive(Debug)]
pub struct Cursor<'a> {
    tree: &'a Tree,
    root: BorrowedFd<'a>,
    current: Option<(usize, OwnedFd)>,
}

impl<'a> Cursor<'a> {
    /// Walks the members of `tree` below `root`.
    pub fn new(tree: &'a Tree, root: BorrowedFd<'a>) -> Self {
        Self { tree, root, current: None }
    }

    /// The directory in which member `index` is.
    pub fn directory_of(&mut self, index: usize) -> rustix::io::Result<BorrowedFd<'_>> {
        let parent = self.tree.nodes[index].parent;
        if self.current.as_ref().is_none_or(|(open, _)| *open != parent) {
            self.current = Some((parent, self.tree.open_directory(self.root, parent)?));
        }
        match &self.current {
            Some((_, fd)) => Ok(fd.as_fd()),
            None => Err(Errno::BADF),
        }
    }
}
