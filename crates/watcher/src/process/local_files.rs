//! Touches files of other processes, but none for which that could wait for ever.
//!
//! A file system that a server or a daemon serves (NFS, FUSE) answers when that likes to. While it hangs, not only reads
//! wait, in state D, but also stat(2), open(2), and close(2) of a descriptor that was only borrowed (`FUSE_FLUSH`). So where
//! a file lies is found out beforehand, from what never waits: the links of /proc, fdinfo, and mountinfo. What does not lie
//! on a file system of this machine's own is left out: no disk of this machine is below it that a limit could be for, or the
//! daemon that serves it moves the bytes itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use discnice_sys::{file, procfs, time};
use discnice_units::Moment;
use rustix::fs::OFlags;

use super::descriptors;
use super::mountinfo::{self, Mount};
use crate::tuning;

/// The file system that is local if all its layers are.
const LAYERED: &str = "overlay";

/// What a process sees mounted: whether what lies on such a folder is local.
type View = HashMap<PathBuf, bool>;

/// What was read of mounts, for a while.
#[derive(Debug, Default)]
struct Mounts {
    until: Moment,
    /// By the number of a mount.
    local: HashMap<u32, bool>,
    /// By process; `None` for this one.
    views: HashMap<Option<u32>, View>,
}

impl Mounts {
    /// Forgets what is too old.
    fn renew(&mut self, now: Moment) {
        if now >= self.until {
            *self = Self { until: now.plus(tuning::looks::MOUNTS_FOR), ..Self::default() };
        }
    }

    /// Whether a descriptor's file is local, by the number of its mount. One that was inherited or sent may lie on a mount that
    /// only others see.
    fn has(&mut self, process: u32, mount: u32) -> bool {
        [None, Some(process)].into_iter().any(|viewer| {
            self.see(viewer);
            self.local.get(&mount) == Some(&true)
        })
    }

    /// Whether all that this path of a process's leads through is local: nothing is, where its mounts could not be read.
    fn leads(&mut self, viewer: Option<u32>, path: &Path) -> bool {
        self.see(viewer);
        let view = self.views.get(&viewer).filter(|view| !view.is_empty());
        path.is_absolute() && view.is_some_and(|view| is_clear(view, path))
    }

    /// Reads what a process sees, unless that is known.
    fn see(&mut self, viewer: Option<u32>) {
        if !self.views.contains_key(&viewer) {
            self.enter(viewer, &mountinfo::of(viewer));
        }
    }

    fn enter(&mut self, viewer: Option<u32>, mounts: &[Mount]) {
        let mut view = View::new();
        for mount in mounts {
            let is_local = if mount.kind == LAYERED {
                // Their paths are those of the process that mounted it.
                let seen = [Some(&view), self.views.get(&None)];
                mount.layers().all(|layer| seen.iter().flatten().all(|view| is_clear(view, &layer)))
            } else {
                mount
                    .kind
                    .to_str()
                    .is_some_and(|kind| file::is_local_mount(kind, mount.has_driver()))
            };
            self.local.insert(mount.id, is_local);
            // It hides an earlier one on the same folder.
            view.insert(mount.point.clone(), is_local);
        }
        self.views.insert(viewer, view);
    }
}

/// Whether nothing but local file systems lies on the way.
fn is_clear(view: &View, path: &Path) -> bool {
    path.ancestors().all(|folder| view.get(folder) != Some(&false))
}

thread_local! {
    static MOUNTS: RefCell<Mounts> = RefCell::default();
}

/// Whether a file can be touched that a link in /proc or a name leads to.
pub(crate) fn is_local(path: &Path) -> bool {
    MOUNTS.with_borrow_mut(|mounts| {
        mounts.renew(time::now());
        judge(mounts, path).unwrap_or(false)
    })
}

fn judge(mounts: &mut Mounts, path: &Path) -> Option<bool> {
    let Ok(below) = path.strip_prefix("/proc") else { return Some(mounts.leads(None, path)) };
    let mut parts = below.iter();
    let process = parts.next()?.to_str()?.parse().ok()?;
    if procfs::is_executing(process) {
        return None;
    }
    match parts.next()?.to_str()? {
        "fd" => Some(mounts.has(process, descriptors::mount(path)?)),
        "cwd" => Some(mounts.leads(Some(process), &fs::read_link(path).ok()?)),
        "root" => Some(mounts.leads(Some(process), &Path::new("/").join(parts.as_path()))),
        _ => None,
    }
}

/// The status of the file that a link in /proc leads to.
pub(crate) fn status(link: &Path) -> Option<Metadata> {
    if is_local(link) { fs::metadata(link).ok() } else { None }
}

/// The status of what has this name; that of a symbolic link itself.
pub(crate) fn status_at(path: &Path) -> Option<Metadata> {
    if is_local(path) { fs::symlink_metadata(path).ok() } else { None }
}

/// The file itself anew, for reading only: a descriptor that can write would keep the program in it from
/// being executed (`ETXTBSY`) if the process closed its own meanwhile. Never waits for a pipe's other end.
pub(crate) fn open_anew(path: &Path) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    if is_local(path) {
        OpenOptions::new().read(true).custom_flags(flags).open(path).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use super::*;

    const OURS: &[u8] = b"\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:40 / /home/u/far rw - fuse.sshfs u@far: rw
24 22 0:41 / /net rw - nfs4 far:/ rw
25 24 254:1 / /net/near rw - xfs /dev/vdb rw
26 22 0:42 / /both rw - overlay overlay rw,lowerdir=/net/a:/b,upperdir=/c,workdir=/d
27 22 0:43 / /near rw - overlay overlay rw,lowerdir=/b,upperdir=/c,workdir=/d
28 22 0:44 / /hidden rw - 9p far rw
29 22 0:45 / /hidden rw - tmpfs near rw
30 22 0:46 / /new rw - of_tomorrow far rw
31 22 0:47 / /image rw - erofs none ro,fsid=image
32 22 7:1 / /module rw - erofs /dev/loop1 ro
";
    /// In a container that sees a layer of its own and not what the layer consists of.
    const ITS: &[u8] = b"\
40 1 0:50 / / rw - overlay overlay rw,lowerdir=/home/u/far/l:/m,upperdir=/c,workdir=/d
41 40 254:0 / /home/u/far rw - ext4 /dev/vda rw
";

    fn mounts() -> Mounts {
        let mut mounts = Mounts { until: Moment::NEVER, ..Mounts::default() };
        mounts.enter(None, &mountinfo::parse(OURS));
        mounts.enter(Some(7), &mountinfo::parse(ITS));
        mounts
    }

    #[test]
    fn what_is_served_and_what_is_unknown_is_left_alone() {
        let mut mounts = mounts();
        let local: Vec<u32> = (20..50).filter(|mount| mounts.has(7, *mount)).collect();
        assert_eq!(local, [22, 25, 27, 29, 32, 41]);
    }

    #[test]
    fn a_name_must_not_lead_through_what_is_served() {
        let mut mounts = mounts();
        let mut leads = |path: &str| judge(&mut mounts, Path::new(path));
        for path in ["/home/u/file", "/near/file", "/hidden/file", "/home/u/farther"] {
            assert_eq!(leads(path), Some(true), "{path}");
        }
        for path in ["/home/u/far", "/home/u/far/file", "/net/near/file", "/both/file", "here"] {
            assert_eq!(leads(path), Some(false), "{path}");
        }
        assert_eq!(leads("/proc/7/root/home/u/far/file"), Some(false), "it begins at a layer");
        assert_eq!(leads("/proc/version"), None);
        mounts.enter(Some(8), &[]);
        assert!(!mounts.leads(Some(8), Path::new("/home/u/file")), "nothing is known of it");
    }

    #[test]
    fn what_was_read_is_not_used_for_long() {
        let mut mounts = mounts();
        mounts.until = Moment::FIRST.plus(Nanos::SECOND);
        mounts.renew(Moment::FIRST.plus(Nanos::SECOND.minus(Nanos(1))));
        assert!(mounts.has(7, 22));
        mounts.renew(Moment::FIRST.plus(Nanos::SECOND));
        assert!(mounts.local.is_empty() && mounts.views.is_empty());
    }

    #[test]
    fn files_on_a_disk_can_be_touched() {
        use std::os::fd::AsRawFd;

        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let own = format!("/proc/{}", std::process::id());
        let link = format!("{own}/fd/{}", file.as_file().as_raw_fd());
        assert!(status(Path::new(&link)).is_some_and(|found| found.is_file()));
        assert!(status_at(file.path()).is_some() && open_anew(file.path()).is_some());
        assert!(status(Path::new(&format!("{own}/cwd"))).is_some());
        let inside = format!("{own}/root{}", file.path().display());
        assert!(status_at(Path::new(&inside)).is_some());
    }
}
