//! A limit by the kernel's own means: a control group with a disk rate (io.max of version 2,
//! blkio.throttle of version 1). Needs root, which DiscNice does not; a peer, not a part.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use discnice_units::Rate;

const NAME: &str = "discnice-eval";

/// A control group with a limit; removed when dropped, after its processes ended.
pub struct Limited {
    folder: PathBuf,
}

/// Which of the two interfaces this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    IoMax,
    BlkioThrottle,
}

impl Limited {
    /// Limits reads from and writes to `device` to `rate` each.
    ///
    /// # Errors
    /// The kernel has no control group for disks, or refuses the limit.
    pub fn new(device: &Path, rate: Rate) -> anyhow::Result<Self> {
        let (parent, interface) = parent()?;
        let folder = parent.join(NAME);
        if !folder.is_dir() {
            fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let group = Self { folder };
        let number = crate::disk::number(device)?;
        let rate = rate.get();
        match interface {
            Interface::IoMax => {
                group.set("io.max", &format!("{number} rbps={rate} wbps={rate}"))?;
            }
            Interface::BlkioThrottle => {
                for direction in ["read", "write"] {
                    let file = format!("blkio.throttle.{direction}_bps_device");
                    group.set(&file, &format!("{number} {rate}"))?;
                }
            }
        }
        Ok(group)
    }

    /// Puts a process, and the children that it will have, into the group.
    ///
    /// # Errors
    /// It has ended.
    pub fn add(&self, pid: u32) -> anyhow::Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }

    fn set(&self, file: &str, value: &str) -> anyhow::Result<()> {
        let file = self.folder.join(file);
        fs::write(&file, value)
            .with_context(|| format!("the kernel refuses {value} for {}", file.display()))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes a group after its processes have ended or were killed.
pub fn remove(folder: &Path) {
    // Killed processes leave the group some moments after they were reaped.
    for _ in 0..50 {
        if fs::remove_dir(folder).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    eprintln!("{}cannot remove {}; rmdir it", crate::message::PREFIX, folder.display());
}

/// The group that a killed run has left, if there is one.
#[must_use]
pub fn left_behind() -> Option<PathBuf> {
    let folder = parent().ok()?.0.join(NAME);
    folder.is_dir().then_some(folder)
}

/// Why a limit by control group cannot be had; `None` if it can.
#[must_use]
pub fn lack() -> Option<String> {
    parent().err().map(|error| format!("{error:#}"))
}

fn parent() -> anyhow::Result<(PathBuf, Interface)> {
    let root = Path::new("/sys/fs/cgroup");
    let blkio = root.join("blkio");
    if blkio.join("blkio.throttle.read_bps_device").exists() || blkio.join("cgroup.procs").exists()
    {
        return Ok((blkio, Interface::BlkioThrottle));
    }
    let delegated = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
    if delegated.split_whitespace().any(|controller| controller == "io") {
        return Ok((root.into(), Interface::IoMax));
    }
    bail!("no control group for disks (neither blkio nor an enabled io controller)")
}
