//! Bytes to and from a server. Each exchange ends in time and within bounds, whatever the server sends: one byte a second
//! would never be given up by a timeout of each read, and bytes without end would fill the memory.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{ConnectionLike, ErrorKind, Parser, RedisResult, Value};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fault::Fault;

/// A server that has not answered whole within this is not waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Addresses of one name that are tried.
const TRIED: usize = 4;
/// A longer answer is no server's.
const LONGEST: u64 = 1 << 18;

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    parser: Parser,
    longest: u64,
}

enum Stream {
    Plain(Bounded),
    Encrypted(Box<StreamOwned<ClientConnection, Bounded>>),
}

/// A socket for one exchange, which ends at a moment and after so many bytes that were read.
struct Bounded {
    socket: TcpStream,
    until: Instant,
    left: u64,
}

impl Connection {
    /// Connects, but says nothing yet.
    ///
    /// # Errors
    /// There is no such host, or nothing listens there.
    pub(crate) fn open(host: &str, port: u16) -> Result<Self, Fault> {
        let unreachable =
            |error: io::Error| Fault::Unreachable(crate::fault::shown(&error.to_string()));
        let mut failed = io::Error::other("the name has no address");
        for place in (host, port).to_socket_addrs().map_err(unreachable)?.take(TRIED) {
            match TcpStream::connect_timeout(&place, PATIENCE) {
                Ok(socket) => {
                    socket.set_nodelay(true).map_err(unreachable)?;
                    let stream = Bounded { socket, until: Instant::now(), left: 0 };
                    let stream = Stream::Plain(stream);
                    return Ok(Self { stream, parser: Parser::new(), longest: LONGEST });
                }
                Err(error) => failed = error,
            }
        }
        Err(unreachable(failed))
    }

    /// Encrypts from now on; the certificate must be of this host, by one of these authorities.
    ///
    /// # Errors
    /// The name of the host cannot be that of a certificate.
    pub(crate) fn encrypt(self, host: &str, roots: RootCertStore) -> Result<Self, Fault> {
        let wrong = |error: &dyn std::fmt::Display| Fault::Tls(error.to_string());
        let Stream::Plain(socket) = self.stream else { return Ok(self) };
        let versions =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config =
            versions.with_safe_default_protocol_versions().map_err(|error| wrong(&error))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(&error))?;
        let client =
            ClientConnection::new(Arc::new(config), name).map_err(|error| wrong(&error))?;
        let stream = Stream::Encrypted(Box::new(StreamOwned::new(client, socket)));
        Ok(Self { stream, ..self })
    }

    /// Allows answers of this length from now on.
    pub(crate) fn allow(&mut self, longest: u64) {
        self.longest = longest;
    }
}

/// The authorities in a file, or the system's; `None` if there are none in it.
pub(crate) fn authorities(file: Option<&[u8]>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found: Vec<CertificateDer<'_>> = match file {
        Some(bytes) => CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().ok()?,
        // One file that cannot be read takes nothing from the others.
        None => rustls_native_certs::load_native_certs().certs,
    };
    let (added, _) = roots.add_parsable_certificates(found);
    (added > 0).then_some(roots)
}

impl ConnectionLike for Connection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        let bounded = match &mut self.stream {
            Stream::Plain(bounded) => bounded,
            Stream::Encrypted(stream) => &mut stream.sock,
        };
        (bounded.until, bounded.left) = (Instant::now() + PATIENCE, self.longest);
        self.stream.write_all(command)?;
        self.stream.flush()?;
        self.parser.parse_value(&mut self.stream)
    }

    fn req_packed_commands(&mut self, _: &[u8], _: usize, _: usize) -> RedisResult<Vec<Value>> {
        Err((ErrorKind::Client, "one command at a time").into())
    }

    fn supports_pipelining(&self) -> bool {
        false
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

impl Bounded {
    /// How long the exchange may go on.
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A timeout of the socket, which it calls by another name.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if room == 0 {
            return Err(io::Error::other("the answer has no end"));
        }
        let count = self.socket.read(&mut buffer[..room]).map_err(late)?;
        self.left -= count as u64;
        Ok(count)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Encrypted(stream) => stream.flush(),
        }
    }
}
