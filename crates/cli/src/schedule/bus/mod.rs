//! A client of message buses (D-Bus), which knows just enough to ask for a property, and to ask the user something on the desktop.
//!
//! - `property`: one property of one service;
//! - `notification`: a question on the desktop, and its answer;
//! - `wire`: messages as bytes.

mod notification;
mod property;
mod wire;

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use notification::{Action, Answer, Question};
pub use property::get;
pub use wire::BusMember;
use wire::{Argument, Message};

/// A bus that takes longer to answer is none.
const PATIENCE: Duration = Duration::from_millis(500);
/// The shortest time-out of a socket that means what it says.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Where the system's bus listens.
const USUAL: &str = "/run/dbus/system_bus_socket";

const BUS: BusMember<'_> = BusMember {
    service: "org.freedesktop.DBus",
    object: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
    name: "Hello",
};

/// The socket of the system's bus.
pub fn system() -> PathBuf {
    given("DBUS_SYSTEM_BUS_ADDRESS").unwrap_or_else(|| USUAL.into())
}

/// The socket of the bus of the user's session, if there may be one.
pub fn session() -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?).join("bus"));
    given("DBUS_SESSION_BUS_ADDRESS").or_else(usual)
}

/// The socket in an address that stands in this variable.
fn given(variable: &str) -> Option<PathBuf> {
    let address = env::var(variable).unwrap_or_default();
    let path = address.split(';').find_map(|one| {
        let keys = one.strip_prefix("unix:")?;
        keys.split(',').find_map(|key| key.strip_prefix("path="))
    });
    path.map(PathBuf::from)
}

/// A connection with a bus.
#[derive(Debug)]
struct Bus {
    stream: UnixStream,
    received: Vec<u8>,
    serial: u32,
}

impl Bus {
    /// Says which user this is, which the kernel confirms, and takes part.
    fn connect(socket: &Path, until: Instant) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut bus = Self { stream, received: Vec::new(), serial: 0 };
        let user = rustix::process::geteuid().as_raw().to_string();
        let hex: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        bus.stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let line = loop {
            if let Some(end) = bus.received.iter().position(|byte| *byte == b'\n') {
                let rest = bus.received.split_off(end + 1);
                break std::mem::replace(&mut bus.received, rest);
            }
            if !bus.receive(until)? || bus.received.len() > 256 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        };
        if !line.starts_with(b"OK ") {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        bus.stream.write_all(b"BEGIN\r\n")?;
        bus.call(&BUS, &[], false)?;
        Ok(bus)
    }

    /// Calls a method; returns the number of the call.
    fn call(
        &mut self,
        method: &BusMember<'_>,
        arguments: &[Argument<'_>],
        starts: bool,
    ) -> io::Result<u32> {
        self.serial += 1;
        self.stream.write_all(&wire::call(self.serial, method, arguments, starts))?;
        Ok(self.serial)
    }

    /// Waits for the answer to a call.
    fn answer(&mut self, serial: u32, until: Instant) -> io::Result<Message> {
        while let Some(message) = self.message(until)? {
            if message.answers(serial) {
                return Ok(message);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The next message, if it comes until then.
    fn message(&mut self, until: Instant) -> io::Result<Option<Message>> {
        loop {
            let taken = Message::take(&mut self.received);
            if let Some(message) = taken.map_err(|_| io::ErrorKind::InvalidData)? {
                return Ok(Some(message));
            }
            if !self.receive(until)? {
                return Ok(None);
            }
        }
    }

    /// Waits until then for more; returns whether any came.
    fn receive(&mut self, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now()).max(AT_ONCE);
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.received.extend(bytes.get(..length).unwrap_or_default());
                Ok(true)
            }
            Err(error) if is_late(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
