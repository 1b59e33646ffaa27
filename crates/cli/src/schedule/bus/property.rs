//! One property of one service, which is not started for that.

use std::io;
use std::path::Path;
use std::time::Instant;

use super::wire::Argument;
use super::{Bus, BusMember, PATIENCE};

/// A property that is a number or a truth; `None` where there is no bus, service or property.
pub fn get(socket: &Path, property: &BusMember<'_>) -> Option<u64> {
    ask(socket, property).ok().flatten()
}

fn ask(socket: &Path, property: &BusMember<'_>) -> io::Result<Option<u64>> {
    let until = Instant::now() + PATIENCE;
    let mut bus = Bus::connect(socket, until)?;
    let get = BusMember { interface: "org.freedesktop.DBus.Properties", name: "Get", ..*property };
    let arguments = [property.interface, property.name].map(Argument::Text);
    let serial = bus.call(&get, &arguments, false)?;
    Ok(bus.answer(serial, until)?.variant())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    const PROPERTY: BusMember<'_> =
        BusMember { service: "a.b", object: "/a", interface: "a.b", name: "C" };

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
        let mut message = vec![b'l', 2, 1, 1];
        message.extend((body.len() as u32).to_le_bytes());
        message.extend([7, 0, 0, 0, 15, 0, 0, 0, 5, 1, b'u', 0]);
        message.extend(serial.to_le_bytes());
        message.extend([8, 1, b'g', 0, 1, b'v', 0, 0]);
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
