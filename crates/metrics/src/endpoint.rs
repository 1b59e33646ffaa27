//! Where metrics are served: a port of this machine, or a socket in the file system.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An endpoint that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `9123`, `:9123`, `127.0.0.1:9123`, `[::1]:9123`. Without an address only this machine
    /// reaches it.
    Port(SocketAddr),
    /// A path, which contains a slash.
    Socket(PathBuf),
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') {
            return Ok(Self::Socket(PathBuf::from(text)));
        }
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self::Port(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        let wrong =
            "give a port (9123), an address with a port (127.0.0.1:9123) or a path with a `/`";
        text.parse().map(Self::Port).map_err(|_| wrong)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(address) => write!(f, "{address}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The reason why an endpoint cannot be listened at.
#[derive(Debug)]
pub struct Unusable {
    endpoint: Endpoint,
    error: io::Error,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why: &dyn fmt::Display = match self.error.kind() {
            io::ErrorKind::AddrInUse => &"in use",
            _ => &self.error,
        };
        write!(f, "cannot listen at {}: {why}; choose another", self.endpoint)
    }
}

impl std::error::Error for Unusable {}

/// Listens at an endpoint.
#[derive(Debug)]
pub enum Listener {
    /// At a port.
    Port(TcpListener),
    /// At a path.
    Socket(UnixListener),
}

impl Listener {
    /// Begins to listen.
    ///
    /// # Errors
    /// The endpoint is in use, or may not be used.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, Unusable> {
        let unusable = |error| Unusable { endpoint: endpoint.clone(), error };
        match endpoint {
            Endpoint::Port(port) => TcpListener::bind(port).map(Self::Port),
            Endpoint::Socket(path) => {
                remove_abandoned(path);
                UnixListener::bind(path).map(Self::Socket)
            }
        }
        .map_err(unusable)
    }

    /// The port, which the kernel chose if 0 was asked for.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Port(listener) => listener.local_addr().ok().map(|address| address.port()),
            Self::Socket(_) => None,
        }
    }
}

/// Removes a socket without a listener, and nothing else.
fn remove_abandoned(path: &Path) {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if !is_socket {
        return;
    }
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if UnixStream::connect(path).is_err_and(refused) {
        // If that fails, so does listening, which says why.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_people_type() {
        let local = |port| Ok(Endpoint::Port(SocketAddr::from(([127, 0, 0, 1], port))));
        assert_eq!("9123".parse::<Endpoint>(), local(9123));
        assert_eq!(":9123".parse::<Endpoint>(), local(9123));
        assert_eq!("127.0.0.1:1".parse::<Endpoint>(), local(1));
        assert_eq!("[::1]:9".parse::<Endpoint>().unwrap().to_string(), "[::1]:9");
        assert_eq!("./a".parse::<Endpoint>(), Ok(Endpoint::Socket("./a".into())));
        for wrong in ["", "localhost", "1.2.3.4", "70000", ":x", "::1"] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_abandoned_socket_is_taken_over_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let endpoint = Endpoint::Socket(path.clone());
        let first = Listener::bind(&endpoint).unwrap();
        let refused = Listener::bind(&endpoint).unwrap_err().to_string();
        assert!(refused.contains("in use"), "{refused}");
        drop(first);
        drop(Listener::bind(&endpoint).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(Listener::bind(&endpoint).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
