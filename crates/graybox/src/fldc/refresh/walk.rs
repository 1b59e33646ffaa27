//! Opening directories without crossing links or mounts, whatever is put in the way meanwhile.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory below `dir`: no component may be a link, a mount point or `..`.
///
/// # Errors
/// As openat2(2).
pub fn open_beneath(dir: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match rustix::fs::openat2(dir, path, DIRECTORY, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => step_by_step(dir, path, true),
        other => other,
    }
}

/// Opens a directory by an absolute path in which no component may be a link.
///
/// # Errors
/// As openat2(2).
pub fn open_without_links(path: &[u8]) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat2(CWD, path, DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS) => {
            let top = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
            step_by_step(top.as_fd(), path, false)
        }
        other => other,
    }
}

/// Walks a path one component at a time, for kernels without openat2(2) (before 5.6).
fn step_by_step(dir: BorrowedFd<'_>, path: &[u8], one_mount: bool) -> rustix::io::Result<OwnedFd> {
    let mut at = rustix::fs::openat(dir, c".", DIRECTORY, Mode::empty())?;
    let mount = mount_of(at.as_fd())?;
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => continue,
            b".." => return Err(Errno::XDEV),
            _ => {}
        }
        let name = CString::new(component).map_err(|_| Errno::INVAL)?;
        at = rustix::fs::openat(&at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        if one_mount && mount_of(at.as_fd())? != mount {
            return Err(Errno::XDEV);
        }
    }
    Ok(at)
}

/// Identity of the mount in which a descriptor lies, as /proc tells it.
pub fn mount_of(fd: BorrowedFd<'_>) -> rustix::io::Result<String> {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    let told = told.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let line = told.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    line.map(|id| id.trim().to_owned()).ok_or(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    type Open = fn(BorrowedFd<'_>, &[u8]) -> rustix::io::Result<OwnedFd>;

    /// By openat2(2), and as on a kernel without it.
    const WAYS: [Open; 2] = [open_beneath, |dir, path| step_by_step(dir, path, true)];

    #[test]
    fn neither_links_nor_mounts_nor_the_parent_are_entered() {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::fs::create_dir_all(scratch.path().join("plain/inner")).unwrap();
        symlink("plain", scratch.path().join("link")).unwrap();
        std::fs::write(scratch.path().join("file"), b"").unwrap();
        let dir = std::fs::File::open(scratch.path()).unwrap();
        let root = std::fs::File::open("/").unwrap();
        for open in WAYS {
            open(dir.as_fd(), b"plain/inner").unwrap();
            open(dir.as_fd(), b".").unwrap();
            assert!(matches!(open(dir.as_fd(), b"link"), Err(Errno::LOOP | Errno::NOTDIR)));
            assert!(matches!(open(dir.as_fd(), b"link/inner"), Err(Errno::LOOP | Errno::NOTDIR)));
            assert_eq!(open(dir.as_fd(), b"file").unwrap_err(), Errno::NOTDIR);
            assert_eq!(open(dir.as_fd(), b"plain/../..").unwrap_err(), Errno::XDEV);
            assert_eq!(open(root.as_fd(), b"proc").unwrap_err(), Errno::XDEV);
        }
    }

    #[test]
    fn absolute_paths_may_cross_mounts_but_no_links() {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let real = scratch.path().canonicalize().unwrap();
        symlink(&real, real.join("link")).unwrap();
        let by_hand: fn(&[u8]) -> rustix::io::Result<OwnedFd> = |path| {
            let top = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
            step_by_step(top.as_fd(), path, false)
        };
        for open in [open_without_links, by_hand] {
            open(real.as_os_str().as_bytes()).unwrap();
            open(b"/proc").unwrap();
            let link = real.join("link");
            let error = open(link.as_os_str().as_bytes()).unwrap_err();
            assert!(matches!(error, Errno::LOOP | Errno::NOTDIR), "{error}");
        }
    }
}
