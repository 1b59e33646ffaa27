//! A number that a program exports as OpenMetrics text, in a file or over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use discnice_processes::tree::Tree;

use crate::control::metric::source::{Source, open_file};

/// Time that one reading may take: an endpoint that hangs must not block the regulator while its
/// job runs on.
const PATIENCE: Duration = Duration::from_millis(500);
/// A longer answer is cut.
const LONGEST: u64 = 4 << 20;

/// Source of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    File(PathBuf),
    Http { host: String, port: u16, path: String },
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("https://") {
            return Err("https is not supported; give an http:// address or a file".into());
        }
        let Some(rest) = text.strip_prefix("http://") else {
            return Ok(Self::File(text.into()));
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("bad port in {text}"))?)
            }
            _ => (authority, 80),
        };
        let host = host.trim_matches(['[', ']']);
        if host.is_empty() || text.contains(char::is_whitespace) {
            return Err(format!("bad address {text}"));
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self::Http { host: host.into(), port, path: path.into() })
    }
}

pub(super) struct Endpoint {
    place: Place,
    name: String,
}

impl Endpoint {
    pub(super) fn new(place: Place, name: String) -> Self {
        Self { place, name }
    }
}

impl Source for Endpoint {
    fn read(&mut self, _tree: &Tree) -> io::Result<f64> {
        let text = match &self.place {
            Place::File(path) => {
                let mut text = String::new();
                open_file(path)?.take(LONGEST).read_to_string(&mut text)?;
                text
            }
            Place::Http { host, port, path } => get(host, *port, path)?,
        };
        sum(&text, &self.name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

//= ms-manners/7.2-counters
/// The sum of all samples of `name`, whatever their labels; `None` without any.
fn sum(text: &str, name: &str) -> Option<f64> {
    let samples = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.strip_prefix('{') {
            Some(labelled) => behind_labels(labelled)?,
            None => rest.strip_prefix([' ', '\t'])?,
        };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    samples.reduce(|a, b| a + b)
}

/// What stands behind labels: they end at the first brace outside of quotes, and an exemplar may have some, too.
fn behind_labels(labelled: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = labelled.find(|one: char| {
        let was_escaped = is_escaped;
        is_escaped = one == '\\' && !was_escaped;
        is_quoted ^= one == '"' && !was_escaped;
        one == '}' && !is_quoted
    })?;
    labelled.get(end + 1..)
}

/// The body of an HTTP/1.0 answer, for which no chunked encoding exists.
fn get(host: &str, port: u16, path: &str) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let mut stream = connect(&addresses, left)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(request(host, port, path).as_bytes())?;
    let mut answer = Vec::new();
    let mut block = [0; 16 * 1024];
    while (answer.len() as u64) < LONGEST {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut block)? {
            0 => break,
            got => answer.extend_from_slice(&block[..got]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    if head.split(' ').nth(1) != Some("200") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the endpoint refused"));
    }
    Ok(body.to_owned())
}

/// A connection to the first of these addresses that accepts one: a program that listens on 127.0.0.1
/// alone is not found at `::1`, which `localhost` stands for as well. Each has its part of the time
/// that is left, as a packet filter may swallow what is sent to one.
fn connect(
    addresses: &[SocketAddr],
    left: impl Fn() -> io::Result<Duration>,
) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for (address, to_try) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let part = left()?.div_f64(to_try as f64).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(address, part) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn request(host: &str, port: u16, path: &str) -> String {
    // The colons of an address are not the one before the port.
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: text/plain\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const TEXT: &str = "# TYPE done counter\ndone_total{disk=\"a b\"} 5 1700000000\n\
                        done_total{disk=\"c\"} 2.5\ndone_total_bytes 7\nidle 0\n";

    /// Serves one connection in the way given.
    fn serve(answer: Option<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            match answer {
                Some(text) => drop(stream.write_all(text.as_bytes())),
                None => std::thread::sleep(Duration::from_secs(3)),
            }
        });
        format!("http://127.0.0.1:{port}/metrics")
    }

    fn read(place: &str, name: &str) -> io::Result<f64> {
        Endpoint::new(place.parse().unwrap(), name.into()).read(&Tree::default())
    }

    //= ms-manners/7.2-counters
    #[test]
    fn files_and_endpoints() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TEXT).unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(read(path, "done_total").unwrap(), 7.5);
        assert_eq!(read(path, "idle").unwrap(), 0.0);
        assert!(read(path, "missing").is_err());
        let answer = format!("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n{TEXT}");
        assert_eq!(read(&serve(Some(answer)), "done_total").unwrap(), 7.5);
    }

    #[test]
    fn an_exemplar_is_not_the_sample() {
        let text = "done_total{path=\"a}b\\\"\"} 17 1520879607.789 # {trace_id=\"x\"} 0.67\n\
                    done_total{path=\"c\"} 3 # {trace_id=\"y\"} 0.5\ndone_total{path=\"torn\n";
        assert_eq!(sum(text, "done_total"), Some(20.0));
    }

    #[test]
    fn an_endpoint_that_hangs_or_refuses_costs_half_a_second_at_most() {
        let start = Instant::now();
        assert!(read(&serve(None), "done_total").is_err());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let refusal = "HTTP/1.0 503 Busy\r\n\r\ndone_total 1\n".to_owned();
        assert!(read(&serve(Some(refusal)), "done_total").is_err());
        assert!(read("http://127.0.0.1:1/", "x").is_err());
    }

    #[test]
    fn an_address_at_which_nothing_listens_is_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let closed = SocketAddr::new("127.0.0.2".parse().unwrap(), open.port());
        let left = || Ok(Duration::from_secs(20));
        assert_eq!(connect(&[closed, open], left).unwrap().peer_addr().unwrap(), open);
        let refused = connect(&[closed], left).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(connect(&[], left).unwrap_err().kind(), io::ErrorKind::NotFound);
        let over = || Err(io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(connect(&[open], over).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_host_of_a_request_keeps_its_brackets() {
        let host_of = |place: &str| match place.parse().unwrap() {
            Place::Http { host, port, path } => request(&host, port, &path),
            Place::File(path) => panic!("{path:?}"),
        };
        assert!(host_of("http://[::1]:9123/m").contains("\r\nHost: [::1]:9123\r\n"));
        assert!(host_of("http://localhost:9123/m").contains("\r\nHost: localhost:9123\r\n"));
    }
}
