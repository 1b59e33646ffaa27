//! A process of our own apart, which does what must go on, or be done, without us.

use std::fs::File;
use std::io;

use discnice_processes::fork;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Starts a helper that does `serve` with the other end of the returned socket, which tells it when
/// we have ended. Each message arrives as a whole, and sending never waits. unix(7),
/// `SOCK_SEQPACKET`
///
/// # Errors
/// Descriptors or processes are short; `Unsupported` in a program with several threads.
pub(crate) fn start(serve: impl FnOnce(File)) -> io::Result<File> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    fork::detached(its, serve)?;
    Ok(ours.into())
}
