//! The FUSE file system: one directory with one file, the image of the disk.
//!
//! Its one reader and writer is the loop device. A request is timed by the model when it arrives,
//! on the thread that receives it, and handed to the head's thread (`head.rs`), which answers it
//! when its moment has come.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use rustix::fs::FallocateFlags;

use super::head::{Answer, Disk, Job};
use super::model::Operation;

/// Name of the image in the mounted directory.
pub const IMAGE_NAME: &str = "image";

const IMAGE: INodeNo = INodeNo(2);
/// Nothing changes behind the kernel's back, so it may remember attributes.
const FOREVER: Duration = Duration::from_secs(3600);
const BLOCK: u64 = 512;

/// The file system, which passes requests on to the head.
pub struct ImageFilesystem {
    disk: Arc<Disk>,
    head: Sender<Job>,
}

impl ImageFilesystem {
    /// Serves `disk`, with its head listening at the other end of `head`.
    pub fn new(disk: Arc<Disk>, head: Sender<Job>) -> Self {
        Self { disk, head }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            IMAGE => (FileType::RegularFile, 0o600, self.disk.size),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / BLOCK,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn pass_on(&self, answer: Answer, due: discnice_units::Moment) {
        // The head ends only with the process; a reply dropped here answers with EIO.
        let _ = self.head.send(Job { due, answer });
    }
}

impl Filesystem for ImageFilesystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without it the loop device would have one request under way at a time.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| std::io::Error::other("this kernel's FUSE has no asynchronous direct I/O"))
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(IMAGE) {
            Some(attributes) if parent == INodeNo::ROOT && name == IMAGE_NAME => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode == IMAGE {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if offset == 0 {
            // One entry always fits.
            let _ = reply.add(IMAGE, 1, FileType::RegularFile, IMAGE_NAME);
        }
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = u64::from(size).min(self.disk.size.saturating_sub(offset));
        let due = self.disk.due(Operation::Read, offset, length);
        match self.disk.read(offset, length as usize) {
            Ok(data) => self.pass_on(Answer::Read(reply, data), due),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if offset.saturating_add(data.len() as u64) > self.disk.size {
            return reply.error(Errno::ENOSPC);
        }
        let due = self.disk.due(Operation::Write, offset, data.len() as u64);
        match self.disk.write(offset, data) {
            Ok(()) => self.pass_on(Answer::Written(reply, data.len() as u32), due),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.pass_on(Answer::Done(reply), self.disk.flushed_at());
    }

    /// Discards and zeroed ranges give memory back; a disk of the papers' day had no such request,
    /// so it costs nothing.
    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        let frees = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !flags.intersects(frees) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self.disk.image.as_fd(), hole, offset, length) {
            Ok(()) => self.pass_on(Answer::Done(reply), self.disk.now()),
            Err(error) => reply.error(std::io::Error::from(error).into()),
        }
    }
}
