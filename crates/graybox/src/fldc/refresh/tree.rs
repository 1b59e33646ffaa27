//! A directory tree as a list, and walking to its members by descriptors, so that trees deeper
//! than `PATH_MAX` and names that are not UTF-8 are nothing special.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;

use super::error::{Context, Result, printable};

/// What has to be kept of a file, and what tells that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of the inode.
    pub nlink: u32,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Device numbers of a device file, major and minor.
    pub rdev: (u32, u32),
    /// Device of the file system.
    pub dev: (u32, u32),
    /// Access time: seconds, nanoseconds.
    pub atime: (i64, u32),
    /// Modification time.
    pub mtime: (i64, u32),
    /// Change time.
    pub ctime: (i64, u32),
    /// Immutable, append-only, encrypted, mount root….
    pub attributes: u64,
}

impl From<Statx> for Meta {
    fn from(stat: Statx) -> Self {
        Self {
            mode: u32::from(stat.stx_mode),
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            nlink: stat.stx_nlink,
            ino: stat.stx_ino,
            size: stat.stx_size,
            allocated: stat.stx_blocks * 512,
            rdev: (stat.stx_rdev_major, stat.stx_rdev_minor),
            dev: (stat.stx_dev_major, stat.stx_dev_minor),
            atime: (stat.stx_atime.tv_sec, stat.stx_atime.tv_nsec),
            mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            attributes: stat.stx_attributes.bits(),
        }
    }
}

impl Meta {
    /// What kind of file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether the file has this attribute of statx(2).
    pub fn has(&self, attribute: StatxAttributes) -> bool {
        self.attributes & attribute.bits() != 0
    }

    /// Whether nothing that anybody could have written differs. Access time and link count of
    /// other names do not count; moving a directory changes the change time only.
    pub fn unchanged(&self, later: &Self, moved: bool) -> bool {
        (self.ino, self.size, self.mtime, self.mode, self.uid, self.gid)
            == (later.ino, later.size, later.mtime, later.mode, later.uid, later.gid)
            && (moved || self.ctime == later.ctime)
    }
}

/// Metadata of `name` in `dir`, links not followed; `.` is the directory itself.
pub fn stat(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Meta> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS).map(Meta::from)
}

/// A member of a tree.
#[derive(Debug)]
pub struct Node {
    /// Index of its directory; the root's is its own.
    pub parent: usize,
    /// Name in that directory; `.` for the root.
    pub name: CString,
    /// As found by the scan.
    pub meta: Meta,
}

/// The members of a directory tree: each directory before what it contains, the contents of one
/// directory in a row. Node 0 is the root.
#[derive(Debug)]
pub struct Tree {
    /// All members.
    pub nodes: Vec<Node>,
}

/// The rank of a member, by its path from the root on, within its directory: the lesser is
/// written first.
pub type RankOf<'a> = &'a dyn Fn(&[u8], &Meta) -> u64;

impl Tree {
    /// Lists a tree. Within each directory files come by rank, then directories by name.
    /// Does not descend into mount points; they are listed, so that they can be refused.
    ///
    /// # Errors
    /// Of the first directory that cannot be read.
    pub fn scan(root: BorrowedFd<'_>, rank: RankOf<'_>) -> Result<Self> {
        let meta = stat(root, c".").doing("look at it", || ".".into())?;
        let mut tree = Self { nodes: vec![Node { parent: 0, name: c".".into(), meta }] };
        let mut at = 0;
        while at < tree.nodes.len() {
            let meta = &tree.nodes[at].meta;
            let enter = at == 0 || !meta.has(StatxAttributes::MOUNT_ROOT);
            if meta.kind() == FileType::Directory && enter {
                tree.scan_directory(root, at, rank)?;
            }
            at += 1;
        }
        Ok(tree)
    }

    fn scan_directory(&mut self, root: BorrowedFd<'_>, at: usize, rank: RankOf<'_>) -> Result<()> {
        let dir = self.open_directory(root, at).doing("open", || self.display(at))?;
        let list = Dir::read_from(&dir).doing("read", || self.display(at))?;
        let first = self.nodes.len();
        for entry in list {
            let entry = entry.doing("read", || self.display(at))?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let meta = stat(dir.as_fd(), name).doing("look at", || self.display_entry(at, name))?;
            self.nodes.push(Node { parent: at, name: name.to_owned(), meta });
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
        Ok(())
    }

    /// Path of an entry of a directory that is no member yet, for people.
    fn display_entry(&self, directory: usize, name: &CStr) -> String {
        let mut path = self.path(directory);
        if directory != 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        printable(&path)
    }

    /// Path of a member from the root on, for people.
    pub fn display(&self, index: usize) -> String {
        match index {
            0 => ".".into(),
            _ => printable(&self.path(index)),
        }
    }

    /// Path of a member from the root on; empty for the root.
    fn path(&self, mut index: usize) -> Vec<u8> {
        let mut names = Vec::new();
        while index != 0 {
            names.push(self.nodes[index].name.as_bytes());
            index = self.nodes[index].parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// Opens a directory of the tree below `root`, which may be another root with the same
    /// members. Neither links nor mounts are crossed, whatever somebody has put in the way.
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
        Ok(fd)
    }
}

fn open_beneath(dir: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)
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

    /// Metadata of member `index` as it is now.
    pub fn stat(&mut self, index: usize) -> rustix::io::Result<Meta> {
        let name = &self.tree.nodes[index].name;
        stat(self.directory_of(index)?, name)
    }
}

/// Removes the tree `name` in `dir`, whatever its permissions; a missing one is removed already.
///
/// # Errors
/// Of the first member that cannot be removed.
pub fn remove(dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    let shown = || printable(name.to_bytes());
    let root = match open_beneath(dir, name.to_bytes()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ACCESS) => {
            make_removable(dir, name).doing("remove", shown)?;
            open_beneath(dir, name.to_bytes()).doing("remove", shown)?
        }
        other => other.doing("remove", shown)?,
    };
    let tree = scan_for_removal(root.as_fd())?;
    let mut cursor = Cursor::new(&tree, root.as_fd());
    for index in (1..tree.nodes.len()).rev() {
        let node = &tree.nodes[index];
        let directory = node.meta.kind() == FileType::Directory;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        cursor
            .directory_of(index)
            .and_then(|parent| rustix::fs::unlinkat(parent, &node.name, flags))
            .doing("remove", || tree.display(index))?;
    }
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR).doing("remove", shown)
}

/// Lists a tree and makes its directories writable on the way.
fn scan_for_removal(root: BorrowedFd<'_>) -> Result<Tree> {
    rustix::fs::fchmod(root, Mode::RWXU).doing("remove", || ".".into())?;
    let mut tree = Tree::scan_top(root)?;
    let mut at = 0;
    while at < tree.nodes.len() {
        if at > 0 && tree.nodes[at].meta.kind() == FileType::Directory {
            let mut cursor = Cursor::new(&tree, root);
            cursor
                .directory_of(at)
                .and_then(|parent| make_removable(parent, &tree.nodes[at].name))
                .doing("remove", || tree.display(at))?;
            tree.scan_directory(root, at, &|_, _| 0)?;
        }
        at += 1;
    }
    Ok(tree)
}

impl Tree {
    /// Lists the root directory only.
    fn scan_top(root: BorrowedFd<'_>) -> Result<Self> {
        let meta = stat(root, c".").doing("look at it", || ".".into())?;
        let mut tree = Self { nodes: vec![Node { parent: 0, name: c".".into(), meta }] };
        tree.scan_directory(root, 0, &|_, _| 0)?;
        Ok(tree)
    }
}

fn make_removable(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())
}
