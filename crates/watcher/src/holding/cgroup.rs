//! Control groups of version 2: where a process is, and a child of that place for it alone.
//! Documentation/admin-guide/cgroup-v2.rst
//!
//! Only a cgroup that is delegated to us will do: its directory is our user's, and not that of the root cgroup, which cannot be
//! frozen. No controller is ever enabled, so a process that had been in a leaf can go back there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use discnice_graybox::mountinfo::plain;
use discnice_processes::tree::Process;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid};

use crate::tuning;

/// `CGROUP2_SUPER_MAGIC` of include/uapi/linux/magic.h.
const MAGIC: u64 = 0x6367_7270;
/// What the names of our children begin with.
const PREFIX: &str = "discnice-";

/// The name of the child for this process.
pub(super) fn name(process: Process) -> String {
    format!("{PREFIX}{}-{}", process.id(), process.started)
}

/// Whether a cgroup of this name is such a child.
fn is_child(name: &OsStr) -> bool {
    process_of(name).is_some()
}

/// The process that a child of this name is for; `None` if the name is no child's.
pub(super) fn process_of(name: &OsStr) -> Option<Process> {
    let (id, started) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    // A sign would be parsed, too.
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(id) || !are_digits(started) {
        return None;
    }
    Some(Process { pid: Pid::from_raw(id.parse().ok()?)?, started: started.parse().ok()? })
}

/// Whether the process is in a cgroup of this name now.
pub(super) fn is_in(id: u32, name: &str) -> bool {
    path_of(id).is_some_and(|path| path.file_name() == Some(OsStr::new(name)))
}

/// Lets a process run that was left in a child that no living process freezes by, and removes that.
///
/// # Errors
/// There is none, or it is in use.
pub(super) fn tidy_abandoned(process: Process) -> io::Result<()> {
    let name = name(process);
    let home = Home::of(process.id()).ok_or(io::ErrorKind::NotFound)?;
    Child::open(&home, &name)?;
    home.tidy(&name)
}

/// Moves this process out of a cgroup by which another process freezes a program, if it was forked
/// there, as it is to hold others, and not to be frozen with that program.
pub fn step_out() {
    let own = path_of(std::process::id());
    if own.is_some_and(|path| path.file_name().is_some_and(is_child))
        && let Some(home) = Home::of(std::process::id())
    {
        // Zero stands for the writer.
        let _ = home.take(b"0");
    }
}

/// The cgroup that a process belongs in, whether or not it is in a child of ours now.
#[derive(Debug)]
pub(super) struct Home {
    directory: OwnedFd,
    pub(super) path: PathBuf,
}

impl Home {
    /// That of process `id`, if it is delegated to us.
    pub(super) fn of(id: u32) -> Option<Self> {
        let path = path_of(id)?;
        let home = path.ancestors().find(|path| !path.file_name().is_some_and(is_child))?;
        let mounts = fs::read("/proc/self/mountinfo").ok()?;
        mounted(&mounts, home).find_map(|path| Self::open(&path).ok())
    }

    /// The one at this path, if it is delegated to us.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let (found, kind) = (rustix::fs::fstat(&directory)?, rustix::fs::fstatfs(&directory)?);
        if found.st_uid != geteuid().as_raw() || kind.f_type as u64 != MAGIC {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // The root cgroup has none.
        rustix::fs::statat(&directory, "cgroup.events", AtFlags::empty())?;
        Ok(Self { directory, path: path.into() })
    }

    /// Makes the child of this name for exclusive use. `WouldBlock` if another program freezes the
    /// process by it; what a killed one left of it is removed.
    pub(super) fn make(&self, name: &str) -> io::Result<Child> {
        let mode = Mode::from_raw_mode(0o755);
        if rustix::fs::mkdirat(&self.directory, name, mode) == Err(Errno::EXIST) {
            match Child::open(self, name) {
                // It stays locked until it is gone.
                Ok(_left) => self.tidy(name)?,
                // The helper of the killed one was quicker.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            rustix::fs::mkdirat(&self.directory, name, mode)?;
        }
        Child::open(self, name).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR);
        })
    }

    /// Moves a process here.
    fn take(&self, id: &[u8]) -> io::Result<()> {
        open_at(&self.directory, "cgroup.procs", OFlags::WRONLY)?.write_all(id)
    }

    /// Lets the processes of the child of this name run.
    pub(super) fn thaw(&self, name: &str) -> io::Result<()> {
        let freeze = format!("{name}/cgroup.freeze");
        open_at(&self.directory, &freeze, OFlags::WRONLY)?.write_all(b"0")
    }

    /// Lets the processes of the child of this name run, here, and removes it. Well if there is none.
    ///
    /// # Errors
    /// As mkdir(2) and write(2); `EBUSY` while a process of it is about to end.
    pub(super) fn tidy(&self, name: &str) -> io::Result<()> {
        match self.thaw(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        for _ in 0..tuning::holding::CGROUP_ROUNDS {
            let procs = format!("{name}/cgroup.procs");
            let ids = io::read_to_string(open_at(&self.directory, &procs, OFlags::RDONLY)?)?;
            // Zero stands for a process that this PID namespace does not show.
            let mut ids = ids.lines().filter(|id| *id != "0").peekable();
            if ids.peek().is_none() {
                break;
            }
            // It may have ended meanwhile.
            ids.for_each(|id| drop(self.take(id.as_bytes())));
        }
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => Ok(()),
            other => Ok(other?),
        }
    }
}

/// A cgroup that we made for a process. What is open stays writable for us, whichever user owns the
/// files later.
#[derive(Debug)]
pub(super) struct Child {
    /// Locked, so that no two programs freeze by the same cgroup. flock(2)
    directory: OwnedFd,
    freeze: File,
    events: File,
}

impl Child {
    fn open(home: &Home, name: &str) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&home.directory, name, flags, Mode::empty())?;
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        let freeze = open_at(&directory, "cgroup.freeze", OFlags::WRONLY)?;
        let events = open_at(&directory, "cgroup.events", OFlags::RDONLY)?;
        Ok(Self { directory, freeze, events })
    }

    /// Moves a process into it.
    pub(super) fn take(&self, id: u32) -> io::Result<()> {
        let mut procs = open_at(&self.directory, "cgroup.procs", OFlags::WRONLY)?;
        procs.write_all(id.to_string().as_bytes())
    }

    /// Freezes its processes, or lets them run.
    pub(super) fn freeze(&self, frozen: bool) -> io::Result<()> {
        self.freeze.write_all_at(if frozen { b"1" } else { b"0" }, 0)
    }

    /// Whether all its processes stand; an empty one counts as frozen, too.
    pub(super) fn is_frozen(&self) -> io::Result<bool> {
        let mut text = [0; 128];
        let length = self.events.read_at(&mut text, 0)?;
        Ok(tells_frozen(text.get(..length).unwrap_or_default()))
    }
}

/// Reads `cgroup.events`: lines of a name and a number.
fn tells_frozen(events: &[u8]) -> bool {
    events.split(|byte| *byte == b'\n').any(|line| line == b"frozen 1")
}

fn open_at(directory: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?.into())
}

/// The cgroup of a process below that of our cgroup namespace. cgroups(7), `/proc/PID/cgroup`
fn path_of(id: u32) -> Option<PathBuf> {
    parse(&fs::read(format!("/proc/{id}/cgroup")).ok()?)
}

/// The hierarchy of version 2 has number 0 and no controllers.
fn parse(text: &[u8]) -> Option<PathBuf> {
    let path = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let path = Path::new(OsStr::from_bytes(path));
    let outside = path.components().any(|part| part == Component::ParentDir);
    (path.is_absolute() && !outside).then(|| path.into())
}

/// Where this cgroup may be found, by the mounts of `/proc/self/mountinfo`: `ID PARENT DEVICE ROOT POINT OPTIONS... - TYPE SOURCE ...`
/// proc_pid_mountinfo(5)
fn mounted(mounts: &[u8], cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    mounts.split(|byte| *byte == b'\n').filter_map(move |line| {
        let mut words = line.split(|byte| *byte == b' ');
        let (root, point) = (plain(words.nth(3)?), plain(words.next()?));
        let kind = words.skip_while(|word| *word != b"-").nth(1)?;
        let below = cgroup.strip_prefix(root).ok().filter(|_| kind == b"cgroup2")?;
        Some(point.join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_of_version_2_is_found() {
        let text = b"9:name=systemd:/a\n4:memory:/b\n0::/user.slice/my app\n";
        assert_eq!(parse(text), Some("/user.slice/my app".into()));
        assert_eq!(parse(b"0::/\n"), Some("/".into()));
        assert_eq!(parse(b"9:name=systemd:/a\n1:cpu:/\n"), None, "version 1 alone");
        assert_eq!(parse(b"0::/../other\n"), None, "outside our namespace");
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn it_lies_below_where_cgroup2_is_mounted() {
        let mounts = b"26 25 0:23 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            27 26 0:24 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
            36 26 0:33 / /sys/fs/cgroup/unified rw,relatime shared:7 master:1 - cgroup2 cgroup2 rw\n\
            40 26 0:33 /a /mnt/of\\040a rw - cgroup2 none rw\n\
            no line of it\n";
        let found = |path: &str| mounted(mounts, Path::new(path)).collect::<Vec<_>>();
        assert_eq!(
            found("/a/b"),
            [Path::new("/sys/fs/cgroup/unified/a/b"), Path::new("/mnt/of a/b")]
        );
        assert_eq!(found("/c"), [Path::new("/sys/fs/cgroup/unified/c")]);
    }

    #[test]
    fn our_own_children_are_known_by_their_names() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(is_child(OsStr::new(&name(own))));
        for other in ["discnice-", "discnice-1", "discnice--1", "discnice-a-1", "app-1-1"] {
            assert!(!is_child(OsStr::new(other)), "{other}");
        }
    }

    #[test]
    fn events_tell_which_groups_stand() {
        assert!(tells_frozen(b"populated 1\nfrozen 1\n"));
        assert!(!tells_frozen(b"populated 1\nfrozen 0\nnew 1\n"));
        assert!(!tells_frozen(b"populated 0\nunfrozen 1\n") && !tells_frozen(b""));
    }
}
