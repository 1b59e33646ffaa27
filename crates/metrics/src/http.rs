//! Answering scrapers: one request for each connection (RFC 9110, RFC 9112).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::endpoint::Listener;
use crate::peer::{Audience, Peer};

/// A request that is not there whole after this time is not waited for, nor is a reply that is not taken by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// As long for other users, which are only told so: they are not to hold the places of those that are answered.
const BRIEFLY: Duration = Duration::from_millis(100);
/// No scraper's request is longer.
const REQUEST_MAX: usize = 8 << 10;
/// Header fields of a request.
const FIELDS: usize = 64;
/// Clients that are answered at once; others are hung up on.
const CROWD: usize = 16;
/// To other users.
const STRANGER: &str =
    "only for the user that runs `discnice metrics`; with --public it answers all\n";
/// OpenMetrics 1.0.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A connection.
trait Connection: Read + Write + Send + Peer {
    /// Has reading and writing fail after this time.
    fn wait_at_most(&self, time: Duration) -> io::Result<()>;
}

impl Connection for TcpStream {
    fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Connection for UnixStream {
    fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// Answers every scraper of the audience with what `metrics` returns, until accepting fails.
///
/// # Errors
/// The listener's.
pub fn serve(
    listener: &Listener,
    audience: Audience,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    let metrics = Arc::new(metrics);
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let Some(connection) = accept(listener)? else { continue };
        if busy.fetch_add(1, Ordering::Relaxed) >= CROWD {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (metrics, done) = (Arc::clone(&metrics), Arc::clone(&busy));
        let started = thread::Builder::new().name("scrape".into()).spawn(move || {
            // A client that hangs up needs no answer.
            let _ = answer(connection, audience, &*metrics);
            done.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// `None` if the connection ended before it began, or there is no descriptor left for it.
fn accept(listener: &Listener) -> io::Result<Option<Box<dyn Connection>>> {
    let accepted: io::Result<Box<dyn Connection>> = match listener {
        Listener::Port(listener) => {
            listener.accept().map(|(stream, _)| Box::new(stream) as Box<dyn Connection>)
        }
        Listener::Socket(listener) => {
            listener.accept().map(|(stream, _)| Box::new(stream) as Box<dyn Connection>)
        }
    };
    match accepted {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
        Err(_) => {
            // accept(2) fails for reasons that pass; asking at once again would spin.
            thread::sleep(Duration::from_millis(10));
            Ok(None)
        }
    }
}

fn answer(
    mut connection: Box<dyn Connection>,
    audience: Audience,
    metrics: &dyn Fn() -> String,
) -> io::Result<()> {
    let metrics = audience.includes(connection.user()).then_some(metrics);
    let until = Instant::now() + if metrics.is_some() { PATIENCE } else { BRIEFLY };
    let mut request = Vec::new();
    let mut part = [0; 1024];
    let reply = loop {
        if let Some(reply) = reply_to(&request, metrics) {
            break reply;
        }
        connection.wait_at_most(left(until)?)?;
        match connection.read(&mut part)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&part[..count]),
        }
    };
    let (until, mut rest) = (Instant::now() + PATIENCE, reply.as_bytes());
    while !rest.is_empty() {
        connection.wait_at_most(left(until)?)?;
        let count = connection.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

/// How long it is until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The reply to a request, to a stranger if there are no `metrics`; `None` while more of it must come.
fn reply_to(request: &[u8], metrics: Option<&dyn Fn() -> String>) -> Option<String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) if request.len() <= REQUEST_MAX => return None,
        Ok(httparse::Status::Partial) | Err(_) => {
            return Some(reply("400 Bad Request", "", "not a request\n", true));
        }
        Ok(httparse::Status::Complete(_)) => {}
    }
    let Some(metrics) = metrics else {
        return Some(reply("403 Forbidden", "", STRANGER, true));
    };
    let path = parsed.path.unwrap_or("").split('?').next().unwrap_or("");
    let whole = parsed.method != Some("HEAD");
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), "/metrics" | "/") => reply("200 OK", TYPE, &metrics(), whole),
        (Some("GET" | "HEAD"), _) => reply("404 Not Found", "", "see /metrics\n", whole),
        _ => reply("405 Method Not Allowed", "", "only GET and HEAD\n", true),
    })
}

fn reply(status: &str, kind: &str, body: &str, whole: bool) -> String {
    let kind = if kind.is_empty() { "text/plain" } else { kind };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n{}",
        body.len(),
        if whole { body } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn status(request: &[u8]) -> Option<String> {
        let reply = reply_to(request, Some(&|| "m 1\n# EOF\n".into()))?;
        reply.lines().next().map(str::to_owned)
    }

    #[test]
    fn requests_of_all_kinds() {
        let status_of = |request: &str| status(request.as_bytes()).unwrap_or_default();
        assert_eq!(status_of("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status_of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status_of("GET /other HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(status_of("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(status_of("\u{16}\u{3}\u{1}nonsense"), "HTTP/1.1 400 Bad Request");
        assert_eq!(status(b"GET /metrics HTT"), None, "the rest may come");
        let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; REQUEST_MAX]].concat();
        assert_eq!(status(&endless).as_deref(), Some("HTTP/1.1 400 Bad Request"));
        let head = reply_to(b"HEAD /metrics HTTP/1.1\r\n\r\n", Some(&|| "m 1\n".into())).unwrap();
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"));
    }

    #[test]
    fn a_stranger_hears_nothing() {
        let reply = reply_to(b"GET /metrics HTTP/1.1\r\n\r\n", None).unwrap();
        assert!(reply.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{reply}");
        assert!(reply_to(b"GET /metrics HTTP", None).is_none());
    }

    #[test]
    fn scrapers_are_answered_beside_one_that_says_nothing() {
        let listener = Listener::bind(&"0".parse().unwrap()).unwrap();
        let port = listener.port().unwrap();
        thread::spawn(move || serve(&listener, Audience::Own, || "m 1\n# EOF\n".into()));
        let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for _ in 0..3 * CROWD {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("# EOF\n"));
        }
    }

    #[test]
    fn scrapers_are_answered_after_a_crowd_that_says_little() {
        let listener = Listener::bind(&"0".parse().unwrap()).unwrap();
        let port = listener.port().unwrap();
        thread::spawn(move || serve(&listener, Audience::Own, || "m 1\n# EOF\n".into()));
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut crowd: Vec<TcpStream> = (0..CROWD).map(|_| connect()).collect();
        let begun = Instant::now();
        loop {
            // Those that are hung up on come again no more.
            crowd.retain_mut(|one| one.write_all(b"G").is_ok());
            let mut stream = connect();
            let mut reply = String::new();
            let asked = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
            if asked.and_then(|()| stream.read_to_string(&mut reply)).is_ok_and(|count| count > 0) {
                assert!(reply.ends_with("# EOF\n"), "{reply}");
                break;
            }
            assert!(begun.elapsed() < 10 * PATIENCE, "no answer beside the crowd");
            thread::sleep(Duration::from_millis(100));
        }
    }
}
