//! One property of one service on the system's message bus, as the D-Bus specification has it: enough to ask three
//! services one question each. Nothing is started for that.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A bus that takes longer to answer is none.
const PATIENCE: Duration = Duration::from_millis(500);
/// A longer message answers no question of ours.
const LONGEST: usize = 1 << 16;
/// Where the bus listens.
const USUAL: &str = "/run/dbus/system_bus_socket";
/// Marks of the wire format.
const LITTLE: u8 = b'l';
const CALL: u8 = 1;
const REPLY: u8 = 2;
const NO_AUTO_START: u8 = 2;
/// Fields of a message's header.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// A property.
#[derive(Debug, Clone, Copy)]
pub struct Property<'a> {
    /// The service that has it.
    pub service: &'a str,
    /// Its object.
    pub object: &'a str,
    /// The interface of that.
    pub interface: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The socket of the system's bus.
pub fn socket() -> PathBuf {
    let address = std::env::var("DBUS_SYSTEM_BUS_ADDRESS").unwrap_or_default();
    let path = address.split(';').find_map(|one| {
        let keys = one.strip_prefix("unix:")?;
        keys.split(',').find_map(|key| key.strip_prefix("path="))
    });
    path.map_or_else(|| USUAL.into(), PathBuf::from)
}

/// A property that is a number or a truth; `None` where there is no bus, service or property.
pub fn get(socket: &Path, property: &Property<'_>) -> Option<u64> {
    ask(socket, property).ok().flatten()
}

fn ask(socket: &Path, property: &Property<'_>) -> io::Result<Option<u64>> {
    let mut bus = Bus { stream: UnixStream::connect(socket)?, until: Instant::now() + PATIENCE };
    bus.authenticate()?;
    let hello = Property {
        service: "org.freedesktop.DBus",
        object: "/org/freedesktop/DBus",
        interface: "org.freedesktop.DBus",
        name: "Hello",
    };
    bus.stream.write_all(&call(1, &hello, &[]))?;
    let get = Property { interface: "org.freedesktop.DBus.Properties", name: "Get", ..*property };
    bus.stream.write_all(&call(2, &get, &[property.interface, property.name]))?;
    loop {
        let message = bus.message()?;
        if message.answers(2) {
            return Ok(message.number());
        }
    }
}

struct Bus {
    stream: UnixStream,
    until: Instant,
}

impl Bus {
    /// Says which user this is; the kernel confirms it.
    fn authenticate(&mut self) -> io::Result<()> {
        let user = rustix::process::geteuid().as_raw().to_string();
        let hex: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.stream.set_write_timeout(Some(PATIENCE))?;
        self.stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && line.len() < 256 {
            let mut byte = [0];
            self.fill(&mut byte)?;
            line.push(byte[0]);
        }
        if !line.starts_with(b"OK ") {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.stream.write_all(b"BEGIN\r\n")
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read_exact(buffer)
    }

    fn message(&mut self) -> io::Result<Message> {
        let mut fixed = [0; 16];
        self.fill(&mut fixed)?;
        let word = |at: usize| fixed.get(at..at + 4).and_then(|four| four.try_into().ok());
        let length = |at| word(at).map_or(0, u32::from_le_bytes) as usize;
        let (body, fields) = (length(4), length(12));
        let head = fields.saturating_add(16).next_multiple_of(8);
        if fixed[0] != LITTLE || head > LONGEST || body > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = fixed.to_vec();
        bytes.resize(head + body, 0);
        self.fill(bytes.get_mut(16..).unwrap_or_default())?;
        Ok(Message { bytes, fields: 16 + fields, body: head })
    }
}

/// A message that was received.
struct Message {
    bytes: Vec<u8>,
    /// Where the fields of the header end, which begin at byte 16.
    fields: usize,
    /// Where the body begins.
    body: usize,
}

impl Message {
    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    /// Whether it is the answer to the call of this number, a good one or an error.
    fn answers(&self, serial: u32) -> bool {
        let mut at = 16;
        while at < self.fields {
            let (Some(field), Some(next)) = (self.bytes.get(at), self.next_field(at)) else {
                return false;
            };
            if *field == REPLY_SERIAL && self.word(at + 4) == Some(serial) {
                return true;
            }
            at = next;
        }
        false
    }

    /// Where the field behind the one at this place begins: all that a bus sends have one of four types.
    fn next_field(&self, at: usize) -> Option<usize> {
        let end = match self.bytes.get(at + 2)? {
            b'u' => at + 8,
            b's' | b'o' => (at + 8).checked_add(self.word(at + 4)? as usize)?.checked_add(1)?,
            b'g' => at + 5 + usize::from(*self.bytes.get(at + 4)?) + 1,
            _ => return None,
        };
        Some(end.next_multiple_of(8))
    }

    /// The number or truth that it brings in a variant.
    fn number(&self) -> Option<u64> {
        if *self.bytes.get(1)? != REPLY {
            return None;
        }
        let signature = self.bytes.get(self.body..self.body + 3)?;
        match signature {
            [1, b'b' | b'u', 0] => self.word(self.body + 4).map(u64::from),
            [1, b't', 0] => {
                let eight = self.bytes.get(self.body + 8..self.body + 16)?;
                Some(u64::from_le_bytes(eight.try_into().ok()?))
            }
            _ => None,
        }
    }
}

/// A call with arguments that are texts.
fn call(serial: u32, of: &Property<'_>, arguments: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    arguments.iter().for_each(|argument| push_text(&mut body, argument));
    let mut fields = Vec::new();
    let texts = [
        (PATH, b'o', of.object),
        (INTERFACE, b's', of.interface),
        (MEMBER, b's', of.name),
        (DESTINATION, b's', of.service),
    ];
    for (field, kind, text) in texts {
        pad(&mut fields, 8);
        fields.extend([field, 1, kind, 0]);
        push_text(&mut fields, text);
    }
    if !arguments.is_empty() {
        pad(&mut fields, 8);
        fields.extend([SIGNATURE, 1, b'g', 0, arguments.len() as u8]);
        fields.extend(arguments.iter().map(|_| b's'));
        fields.push(0);
    }
    let mut message = vec![LITTLE, CALL, NO_AUTO_START, 1];
    message.extend((body.len() as u32).to_le_bytes());
    message.extend(serial.to_le_bytes());
    message.extend((fields.len() as u32).to_le_bytes());
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    pad(bytes, 4);
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    const PROPERTY: Property<'_> =
        Property { service: "a.b", object: "/a", interface: "a.b", name: "C" };

    /// What a bus that says this after the authentication is understood as.
    fn answered(said: &[u8]) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 1];
                stream.read_exact(&mut asked).unwrap();
                // A client that has gone away is none of its concern.
                let _ = stream.write_all(b"OK 00\r\n").and_then(|()| stream.write_all(said));
                // It hears all that is asked, and says nothing more.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = io::copy(&mut stream, &mut io::sink());
            });
            get(&path, &PROPERTY)
        })
    }

    fn reply(serial: u32, body: &[u8]) -> Vec<u8> {
        let mut fields = vec![REPLY_SERIAL, 1, b'u', 0];
        fields.extend(serial.to_le_bytes());
        fields.extend([SIGNATURE, 1, b'g', 0, 1, b'v', 0]);
        let mut message = vec![LITTLE, REPLY, 1, 1];
        message.extend((body.len() as u32).to_le_bytes());
        message.extend(7u32.to_le_bytes());
        message.extend((fields.len() as u32).to_le_bytes());
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }

    #[test]
    fn numbers_and_truths_are_understood() {
        let truth = reply(2, &[1, b'b', 0, 0, 1, 0, 0, 0]);
        assert_eq!(answered(&truth), Some(1));
        let late = [reply(1, &[1, b's', 0, 0, 0, 0, 0, 0, 0]), truth].concat();
        assert_eq!(answered(&late), Some(1), "after the answer to another call");
        let mut long = vec![1, b't', 0, 0, 0, 0, 0, 0];
        long.extend((1u64 << 40).to_le_bytes());
        assert_eq!(answered(&reply(2, &long)), Some(1 << 40));
    }

    #[test]
    fn whatever_a_bus_says_is_no_harm() {
        let good = reply(2, &[1, b'b', 0, 0, 1, 0, 0, 0]);
        for end in 0..good.len() {
            assert_eq!(answered(&good[..end]), None, "cut off at {end}");
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0xff;
            let _ = answered(&bad);
        }
        assert_eq!(answered(&reply(2, &[1, b's', 0, 0, 1, 0, 0, 0])), None);
        assert_eq!(get(Path::new("/nonexistent"), &PROPERTY), None);
    }
}
