//! Where policyd is found, and that there is one only.
//!
//! Of each layout of classes: a daemon that was started before an upgrade goes on with what it watches, beside one
//! that watches what is made since.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use discnice_ledger::layout::VERSION;
use discnice_paths::{Private, name_in_space};
use rustix::fs::{FlockOperation, OFlags, flock};

/// The user's private directory.
#[derive(Debug)]
pub struct DaemonFiles(Private);

/// The right to be the policyd of this user, as long as it lives. The kernel takes it from the dead.
#[derive(Debug)]
pub struct Only(#[expect(dead_code, reason = "held for its lock")] File);

fn name() -> String {
    name_in_space(&format!("policyd-{VERSION}"))
}

impl DaemonFiles {
    /// Finds it.
    ///
    /// # Errors
    /// There is none that only this user can reach.
    pub fn find() -> io::Result<Self> {
        discnice_paths::runtime().map(Self)
    }

    /// The path of the socket, valid in this process as long as this value lives.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.0.by_descriptor(&format!("{}.sock", name()))
    }

    /// Becomes the only one; `None` while another one is.
    ///
    /// # Errors
    /// The lock file's.
    pub fn claim(&self) -> io::Result<Option<Only>> {
        let file = self.0.open(format!("{}.lock", name()), OFlags::WRONLY | OFlags::CREATE)?;
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
    pub fn listen(&self, _: &Only) -> io::Result<UnixListener> {
        let path = self.socket();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        UnixListener::bind(path)
    }
}
