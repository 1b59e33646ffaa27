//! The file systems that are mounted.

use std::io;
use std::path::{Path, PathBuf};

use crate::profile::store::device_name;

/// Type of the file system with this `st_dev`, as in /proc/self/mountinfo.
#[must_use]
pub fn file_system(dev: u64) -> String {
    let wanted = device_name(dev);
    let found = mounts().into_iter().find(|mount| mount.device == wanted);
    // Subvolumes have devices of their own that no mount shows.
    found.map_or_else(|| "unknown".to_owned(), |mount| mount.kind)
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `MAJOR:MINOR`; of a btrfs not that of its files.
    device: String,
    /// Mount point.
    pub point: PathBuf,
    /// Its type.
    pub kind: String,
    /// What it was mounted from.
    source: String,
    /// Options of the file system.
    options: String,
}

/// All that are mounted, the first below the others; none where that is not told. proc_pid_mountinfo(5)
#[must_use]
pub fn mounts() -> Vec<Mount> {
    let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    // Names of folders in it may be any bytes; such a place is then not found.
    String::from_utf8_lossy(&text).lines().filter_map(Mount::parse).collect()
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (place, rest) = line.split_once(" - ")?;
        let (mut place, mut rest) = (place.split(' '), rest.split(' '));
        Some(Self {
            device: place.nth(2)?.to_owned(),
            // Blanks in it are written in octal; such a place is then not found.
            point: place.nth(1)?.into(),
            kind: rest.next()?.to_owned(),
            source: rest.next()?.to_owned(),
            options: rest.next().unwrap_or_default().to_owned(),
        })
    }

    /// Its device number, as stat(2) tells it of its files; of a btrfs it is another one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let (major, minor) = self.device.split_once(':')?;
        Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
    }

    /// What lies below it: a disk, or the folder that it shows again (bindfs), or writes to or else reads from
    /// (overlayfs).
    #[must_use]
    pub fn below(&self) -> &Path {
        let named = |name| self.options.split(',').find_map(|option| option.strip_prefix(name));
        let lower = || named("lowerdir=").or_else(|| named("lowerdir+="))?.split(':').next();
        Path::new(named("upperdir=").or_else(lower).unwrap_or(&self.source))
    }

    /// The device number of the files in its uppermost folder, which on btrfs no list of mounts tells.
    ///
    /// # Errors
    /// Those of stat(2).
    pub fn device_of_files(&self) -> io::Result<u64> {
        Ok(rustix::fs::stat(&self.point)?.st_dev)
    }

    /// The one in which a folder lies.
    pub(super) fn of(dir: &Path) -> Option<Self> {
        let dir = dir.canonicalize().ok()?;
        let above = mounts().into_iter().filter(|mount| dir.starts_with(&mount.point));
        // Of two at one place the later one is on top.
        above.max_by_key(|mount| mount.point.as_os_str().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mounts() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.device.as_str(), mount.point.as_path()), ("98:0", Path::new("/mnt2")));
        assert_eq!((mount.kind.as_str(), mount.source.as_str()), ("ext3", "/dev/root"));
        assert_eq!(mount.below(), Path::new("/dev/root"));
        let line = "9 1 0:44 / /m rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w";
        assert_eq!(Mount::parse(line).unwrap().below(), Path::new("/u"));
        let line = "9 1 0:44 / /m ro - overlay overlay ro,lowerdir=/l:/k";
        assert_eq!(Mount::parse(line).unwrap().below(), Path::new("/l"));
        assert_eq!(Mount::parse("36 35 98:0"), None);
        assert!(Mount::of(Path::new("/proc")).is_some_and(|mount| mount.kind == "proc"));
    }
}
