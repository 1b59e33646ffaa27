//! The clients that have connected to policyd and may say something. None is waited for.
//!
//! There are at most [`tuning::daemon::CLIENTS`] at a time: one more takes the place of the one that has been silent
//! the longest, and each is given up after [`tuning::daemon::CLIENT_PATIENCE`]. So however many connect and say nothing,
//! descriptors are not used up, and a client that says its line is answered at the next look.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use discnice_units::Moment;
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::daemon::tuning;

/// No line is as long as this.
const LINE: usize = 64;

/// The listener and its clients.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: UnixListener,
    /// The oldest first.
    clients: VecDeque<Client>,
    listens_at: Moment,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    since: Moment,
    said: [u8; LINE],
    length: usize,
}

/// What a client has said so far.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// Not all of it.
    Part,
    /// A line.
    Line(usize),
    /// Nothing that could become one.
    Nothing,
}

impl Connections {
    /// Begins to listen.
    ///
    /// # Errors
    /// The listener cannot be made non-blocking.
    pub(crate) fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: VecDeque::new(), listens_at: Moment::FIRST })
    }

    /// What to wait for, the listener last.
    pub(crate) fn descriptors(&self, now: Moment) -> Vec<BorrowedFd<'_>> {
        let listener = (now >= self.listens_at).then(|| self.listener.as_fd());
        self.clients.iter().map(|client| client.stream.as_fd()).chain(listener).collect()
    }

    /// When to look again at the latest.
    pub(crate) fn next(&self, now: Moment) -> Moment {
        let given_up =
            self.clients.front().map(|client| client.since.plus(tuning::daemon::CLIENT_PATIENCE));
        let listens = Some(self.listens_at).filter(|at| *at > now);
        given_up.into_iter().chain(listens).min().unwrap_or(Moment::NEVER)
    }

    /// Listens to all; `answer` is asked for what to reply to a line. Whether any line was answered.
    pub(crate) fn serve(&mut self, now: Moment, mut answer: impl FnMut(&[u8]) -> String) -> bool {
        let mut answered = self.listen(now, &mut answer);
        for _ in 0..tuning::daemon::CLIENTS_AT_ONCE {
            if now < self.listens_at || !self.accept(now) {
                break;
            }
            // At once: a client that has spoken already must not be taken for silent.
            if let Some(mut newest) = self.clients.pop_back() {
                match newest.hear(now) {
                    Said::Part => self.clients.push_back(newest),
                    Said::Line(end) => {
                        answered = true;
                        newest.reply(end, &mut answer);
                    }
                    Said::Nothing => {}
                }
            }
        }
        answered
    }

    fn listen(&mut self, now: Moment, answer: &mut impl FnMut(&[u8]) -> String) -> bool {
        let mut answered = false;
        self.clients.retain_mut(|client| match client.hear(now) {
            Said::Part => true,
            Said::Line(end) => {
                answered = true;
                client.reply(end, answer);
                false
            }
            Said::Nothing => false,
        });
        answered
    }

    /// Takes one connection; false when there is none, or none can be had.
    fn accept(&mut self, now: Moment) -> bool {
        match self.listener.accept() {
            Ok((stream, _)) => {
                if self.clients.len() >= tuning::daemon::CLIENTS {
                    self.clients.pop_front();
                }
                self.clients.extend(Client::new(stream, now));
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) => {
                let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
                if Errno::from_io_error(&error).is_some_and(|errno| short.contains(&errno)) {
                    self.clients.pop_front();
                    self.listens_at = now.plus(tuning::daemon::LISTENER_REST);
                }
                false
            }
        }
    }
}

impl Client {
    /// `None` for another user's.
    fn new(stream: UnixStream, since: Moment) -> Option<Self> {
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        stream.set_nonblocking(true).ok()?;
        (peer.uid == geteuid()).then_some(Self { stream, since, said: [0; LINE], length: 0 })
    }

    fn hear(&mut self, now: Moment) -> Said {
        loop {
            let Some(room) = self.said.get_mut(self.length..).filter(|room| !room.is_empty())
            else {
                return Said::Nothing;
            };
            match self.stream.read(room) {
                // A client that says nothing more has said its line.
                Ok(0) if self.length > 0 => return Said::Line(self.length),
                Ok(0) => return Said::Nothing,
                Ok(more) => {
                    self.length = LINE.min(self.length + more);
                    let said = self.said.iter().take(self.length);
                    if let Some(end) = said.copied().position(|byte| byte == b'\n') {
                        return Said::Line(end);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Said::Nothing,
            }
        }
        if now >= self.since.plus(tuning::daemon::CLIENT_PATIENCE) {
            Said::Nothing
        } else {
            Said::Part
        }
    }

    /// A client that went away, or does not read, gets no answer; what it asked for is done.
    fn reply(&mut self, end: usize, answer: &mut impl FnMut(&[u8]) -> String) {
        let reply = answer(self.said.get(..end).unwrap_or_default());
        let _ = self.stream.write(reply.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use discnice_units::Nanos;

    use std::io::{BufRead, BufReader};

    use super::*;

    const NOW: Moment = Moment(Nanos::SECOND.0);

    struct Scene {
        folder: tempfile::TempDir,
        connections: Connections,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
            Self { connections: Connections::new(listener).unwrap(), folder }
        }

        fn connect(&mut self) -> UnixStream {
            let stream = UnixStream::connect(self.folder.path().join("socket")).unwrap();
            self.serve(NOW);
            stream
        }

        /// What was said in lines.
        fn serve(&mut self, now: Moment) -> Vec<Vec<u8>> {
            let mut lines = Vec::new();
            self.connections.serve(now, |line| {
                lines.push(line.to_vec());
                "heard\n".into()
            });
            lines
        }
    }

    fn heard(stream: UnixStream) -> String {
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line
    }

    #[test]
    fn lines_are_answered_whole_or_in_parts() {
        let mut scene = Scene::new();
        let mut client = scene.connect();
        client.write_all(b"watch").unwrap();
        assert!(scene.serve(NOW).is_empty());
        client.write_all(b" 7\nand more").unwrap();
        assert_eq!(scene.serve(NOW), [b"watch 7"]);
        assert_eq!(heard(client), "heard\n");
        let mut client = scene.connect();
        client.write_all(b"watch 8").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(scene.serve(NOW), [b"watch 8"]);
        assert!(scene.connections.clients.is_empty());
    }

    #[test]
    fn the_silent_are_bounded_and_given_up_the_oldest_first() {
        let mut scene = Scene::new();
        let silent: Vec<UnixStream> =
            (0..3 * tuning::daemon::CLIENTS).map(|_| scene.connect()).collect();
        assert_eq!(scene.connections.clients.len(), tuning::daemon::CLIENTS);
        let mut honest = scene.connect();
        honest.write_all(b"watch 7\n").unwrap();
        assert_eq!(scene.serve(NOW), [b"watch 7"]);
        let (oldest, newest) = (silent.first().unwrap(), silent.last().unwrap());
        newest.set_nonblocking(true).unwrap();
        assert_eq!((&*oldest).read(&mut [0]).unwrap(), 0, "hung up on");
        let kept = (&*newest).read(&mut [0]).unwrap_err();
        assert_eq!(kept.kind(), ErrorKind::WouldBlock, "still listened to");
        assert_eq!(scene.connections.next(NOW), NOW.plus(tuning::daemon::CLIENT_PATIENCE));
        scene.serve(NOW.plus(tuning::daemon::CLIENT_PATIENCE));
        assert!(scene.connections.clients.is_empty());
    }

    #[test]
    fn what_is_no_line_is_dropped() {
        let mut scene = Scene::new();
        for said in [
            &[0; LINE][..],
            &[b'x'; 1 << 16],
            b"watch 1 and so on and so on, without end, for longer than lines",
        ] {
            let mut client = scene.connect();
            client.set_nonblocking(true).unwrap();
            let _ = client.write(said);
            let _ = client.write(said);
            assert!(scene.serve(NOW).is_empty() && scene.connections.clients.is_empty());
        }
        let mut client = scene.connect();
        client.write_all(b"\0\0\n").unwrap();
        assert_eq!(scene.serve(NOW), [b"\0\0"], "it is told what to say");
    }
}
