//! What another process has open, by its links in `/proc/PID/fd` (proc(5)).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use discnice_sys::{deadline, procfs};
use rustix::fs::getxattr;

/// The owner's rights to read and to write, which a link has if its descriptor has them.
const READABLE: u32 = 0o400;
const WRITABLE: u32 = 0o200;

/// The links of the descriptors of process `id`, at most so many; none while it executes a program, as to follow one would
/// wait until it has closed its files. To look at thousands takes longer than a deadline.
pub(crate) fn of(id: u32, most: usize) -> impl Iterator<Item = PathBuf> {
    let most = if procfs::is_executing(id) { 0 } else { most };
    let entries = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    entries.take(most).inspect(|_| deadline::renew()).map(|entry| entry.path())
}

/// The number of a link's descriptor.
pub(crate) fn number(link: &Path) -> Option<i32> {
    link.file_name()?.to_str()?.parse().ok()
}

/// Whether a link means a TCP socket, connected or not; `None` when it was closed meanwhile.
pub(crate) fn is_tcp(link: &Path) -> Option<bool> {
    let mut name = [0; 32];
    // What lsof(8) asks as well.
    getxattr(link, "system.sockprotoname", &mut name[..]).ok()?;
    Some(name.starts_with(b"TCP"))
}

/// Whether the name by which a link's file was opened was removed; `None` when it was closed meanwhile. A file of which this
/// is the whole name looks so, too. Cheaper than the file's status, as no file system is asked.
pub(crate) fn is_unlinked(link: &Path) -> Option<bool> {
    // proc_pid_fd(5).
    fs::read_link(link).ok().map(|target| target.as_os_str().as_bytes().ends_with(b" (deleted)"))
}

/// Whether a link's descriptor can write; `None` when it was closed meanwhile.
pub(crate) fn can_write(link: &Path) -> Option<bool> {
    fs::symlink_metadata(link).ok().map(|link| link.mode() & WRITABLE != 0)
}

/// Returns true if the descriptor of a link can be read from, or if that is not known.
pub(crate) fn can_read(link: &Path) -> bool {
    fs::symlink_metadata(link).map_or(true, |link| link.mode() & READABLE != 0)
}

/// The number of the mount that a link's file lies on.
pub(crate) fn mount(link: &Path) -> Option<u32> {
    let info = link.parent()?.with_file_name("fdinfo").join(link.file_name()?);
    let info = fs::read_to_string(info).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// The inode of the socket that a link means.
pub(crate) fn socket(link: &Path) -> Option<u64> {
    let target = fs::read_link(link).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_link_tells_if_the_name_was_removed() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let number = named.as_file().as_raw_fd();
        let link = PathBuf::from(format!("/proc/self/fd/{number}"));
        assert_eq!(is_unlinked(&link), Some(false));
        let _open = named.into_file();
        assert_eq!(is_unlinked(&link), Some(true));
        assert_eq!(is_unlinked(Path::new("/proc/self/fd/-1")), None);
    }

    #[test]
    fn the_link_tells_if_a_descriptor_can_write() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let reader = fs::File::open(named.path()).unwrap();
        let writable = |wanted: i32| {
            let link = of(std::process::id(), usize::MAX).find(|link| number(link) == Some(wanted));
            can_write(&link?)
        };
        assert_eq!(writable(named.as_file().as_raw_fd()), Some(true));
        assert_eq!(writable(reader.as_raw_fd()), Some(false));
        assert_eq!(writable(i32::MAX), None);
    }
}
