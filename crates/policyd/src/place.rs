//! Where policyd is found, and that there is one only.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use discnice_testpoint::paths;
use rustix::fs::{FlockOperation, flock};

/// The socket, in the user's own runtime directory (0700, its owner and mode checked).
///
/// # Errors
/// There is no such directory, or it is not private.
pub fn socket() -> io::Result<PathBuf> {
    Ok(paths::runtime()?.join("policyd.sock"))
}

/// The right to be the policyd of this user, as long as it lives. The kernel takes it from the dead.
#[derive(Debug)]
pub struct Only(#[expect(dead_code, reason = "held for its lock")] File);

/// Becomes the only one; `None` while another one is.
///
/// # Errors
/// The runtime directory's or the lock file's.
pub fn claim() -> io::Result<Option<Only>> {
    let path = paths::runtime()?.join("policyd.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Only(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Listens; only the holder of [`Only`] may, because it takes a dead one's place.
///
/// # Errors
/// As bind(2).
pub fn listen(_: &Only) -> io::Result<UnixListener> {
    let path = socket()?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}
