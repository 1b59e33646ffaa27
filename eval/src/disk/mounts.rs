//! What is mounted where, and mounting and unmounting.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// One line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// Mount point.
    pub target: PathBuf,
    /// Device or other source.
    pub source: PathBuf,
}

/// Everything mounted in this namespace, in the order of mounting.
///
/// # Errors
/// No /proc.
pub fn all() -> anyhow::Result<Vec<Mounted>> {
    let text = fs::read_to_string("/proc/self/mountinfo").context("cannot read the mounts")?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Fields 5 and, after the lone hyphen, the second: proc_pid_mountinfo(5).
fn parse(line: &str) -> Option<Mounted> {
    let (before, after) = line.split_once(" - ")?;
    let target = unescape(before.split(' ').nth(4)?);
    let source = unescape(after.split(' ').nth(1)?);
    Some(Mounted { target: target.into(), source: source.into() })
}

/// Blank, tab, line break and backslash are written as octal escapes.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Mounts the ext4 file system on `device`, without access times and background initialisation, as
/// their traffic would be measured with the experiment's.
///
/// # Errors
/// As mount(2).
pub fn mount_ext4(device: &Path, target: &Path) -> anyhow::Result<()> {
    let flags = MountFlags::NOATIME | MountFlags::NOSUID | MountFlags::NODEV;
    mount(device, target, c"ext4", flags, c"noinit_itable")
        .with_context(|| format!("cannot mount {} on {}", device.display(), target.display()))
}

/// Unmounts; waits a moment for stragglers such as processes that were just killed.
///
/// # Errors
/// Still in use after two seconds.
pub fn unmount_patiently(target: &Path) -> anyhow::Result<()> {
    for _ in 0..20 {
        match unmount(target, UnmountFlags::empty()) {
            Err(Errno::BUSY) => std::thread::sleep(Duration::from_millis(100)),
            other => {
                return other.with_context(|| format!("cannot unmount {}", target.display()));
            }
        }
    }
    bail!("{} is in use; end what uses it (fuser -vm {0}) and try again", target.display())
}

/// Writes everything of this one file system to its device.
///
/// # Errors
/// As syncfs(2).
pub fn sync(target: &Path) -> anyhow::Result<()> {
    let directory =
        fs::File::open(target).with_context(|| format!("cannot open {}", target.display()))?;
    rustix::fs::syncfs(directory).with_context(|| format!("cannot sync {}", target.display()))
}

/// Takes the mount out of the tree at once, even if it is in use.
///
/// # Errors
/// As umount2(2).
pub fn detach(target: &Path) -> anyhow::Result<()> {
    unmount(target, UnmountFlags::DETACH)
        .with_context(|| format!("cannot detach {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_with_and_without_optional_fields() {
        let expected = Mounted { target: "/mnt/a b".into(), source: "/dev/loop3".into() };
        for optional in ["", " shared:7 master:2"] {
            let line = format!(
                "36 35 7:3 / /mnt/a\\040b rw,noatime{optional} - ext4 /dev/loop3 rw,errors=x"
            );
            assert_eq!(parse(&line), Some(expected.clone()));
        }
        assert!(!all().expect("we have /proc").is_empty());
    }
}
