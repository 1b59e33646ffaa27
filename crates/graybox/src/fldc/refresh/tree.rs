//! A directory tree as a list, and walking to its members by descriptors, so that trees deeper
//! than `PATH_MAX` and names that are not UTF-8 are nothing special.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::error::{Context, Result, printable};
use super::marker::{Facts, Identity};
use super::walk::open_beneath;

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
    /// Time of birth; zeros where the file system has none.
    pub born: (i64, u32),
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
            born: if StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME) {
                (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)
            } else {
                (0, 0)
            },
            attributes: stat.stx_attributes.bits(),
        }
    }
}

impl Meta {
    /// What kind of file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Returns true if the file has this attribute of statx(2).
    pub fn has(&self, attribute: StatxAttributes) -> bool {
        self.attributes & attribute.bits() != 0
    }

    /// The file as the kernel knows it.
    pub fn identity(&self) -> Identity {
        Identity { dev: self.dev, ino: self.ino, born: self.born }
    }

    /// What tells that it was not changed, even if it was moved since.
    pub fn facts(&self) -> Facts {
        let Self { size, uid, gid, mode, mtime, .. } = *self;
        Facts { size, uid, gid, mode, mtime }
    }

    /// Returns true if nothing that a program could have written differs, names included. Access
    /// time does not count.
    pub fn unchanged(&self, later: &Self) -> bool {
        self.identity() == later.identity()
            && self.facts() == later.facts()
            && (self.ctime, self.nlink) == (later.ctime, later.nlink)
    }
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Metadata of `name` in `dir`, links not followed; `.` is the directory itself.
pub fn stat(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Meta> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(dir, name, flags, WANTED).map(Meta::from)
}

/// Metadata of an open file.
pub fn stat_open(fd: BorrowedFd<'_>) -> rustix::io::Result<Meta> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, WANTED).map(Meta::from)
}

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

/// The members of a directory tree: each directory before what it contains, the contents of one
/// directory in a row. Node 0 is the root.
#[derive(Debug)]
pub struct Tree {
    /// All members.
    pub nodes: Vec<Node>,
    /// Directories that could not be read, and why; their contents are no members.
    pub unread: Vec<(usize, Errno)>,
}

/// The rank of a member, by its path from the root on, within its directory: the lesser is
/// written first.
pub type RankOf<'a> = &'a dyn Fn(&[u8], &Meta) -> u64;

impl Tree {
    /// Lists a tree. Within each directory files come by rank, then directories by name.
    /// Does not descend into mount points and other refreshes' work areas; they are listed. What vanishes meanwhile is no member.
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
        let first = self.nodes.len();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match stat(dir.as_fd(), name) {
                Err(Errno::NOENT) => {}
                meta => self.nodes.push(Node { parent: at, name: name.to_owned(), meta: meta? }),
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
    fn path(&self, mut index: usize) -> Vec<u8> {
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
