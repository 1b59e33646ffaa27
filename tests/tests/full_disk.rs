//! Errors of write-back reach the program, also where our own write-back is told of them first.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};

/// Nothing changes behind the kernel's back.
const FOREVER: Duration = Duration::from_secs(3600);

/// A full file system: its files are called by numbers, and the kernel learns only when it writes back what programs
/// wrote that there is no room for it.
struct Full;

fn attributes(inode: INodeNo) -> FileAttr {
    let root = inode == INodeNo::ROOT;
    FileAttr {
        ino: inode,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if root { FileType::Directory } else { FileType::RegularFile },
        perm: 0o777,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Full {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let added = config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE);
        added.map_err(|_| io::ErrorKind::Unsupported.into())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str().and_then(|name| name.parse::<u64>().ok()) {
            Some(number) => {
                let attributes = attributes(INodeNo(INodeNo::ROOT.0 + 1 + number));
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &attributes(inode));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&FOREVER, &attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSPC);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}

/// Mounts a full file system; it is unmounted when dropped.
fn mount(at: &Path) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    config.acl = if product::is_root() { SessionACL::All } else { SessionACL::Owner };
    fuser::spawn_mount(Full, at, &config)
}

/// Ways to the error that a program has to learn of.
const WAYS: [&str; 6] = ["close", "fclose", "pclose", "cloexec", "vfork", "dup"];
/// The guest's exit status before Linux 6.10, where we cannot tell duplicates from other descriptors.
const NO_QUERY: i32 = 3;

#[test]
fn a_full_disk_is_told_by_the_calls_that_tell_it_without_us() {
    let (folder, place) = (product::folder(), product::folder());
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no compiler") };
    let guest = compiler.compile("owed.c");
    let mounted = match mount(place.path()) {
        Ok(mounted) => mounted,
        Err(error) => skip!("no FUSE with a write-back cache: {error}"),
    };
    let class = Class::new("4M");
    let file = |number: usize| place.path().join(number.to_string());
    for (number, way) in WAYS.into_iter().enumerate() {
        let bare = run(product::as_user(&guest).arg(way).arg(file(2 * number)));
        if bare.status == Some(NO_QUERY) {
            skip!("no fcntl(2) with F_DUPFD_QUERY");
        }
        let held = run(class.run().arg(&guest).arg(way).arg(file(2 * number + 1)));
        assert_eq!(bare.clone().succeeded(), held, "{way}");
        assert!(bare.text().contains(&format!("errno {}", libc::ENOSPC)), "{way}: {bare:?}");
    }
    drop(mounted);
}
