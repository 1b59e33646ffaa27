//! Which user a scraper is: a port of this machine can be reached by all of its users, and names of classes are
//! private.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

/// The clients that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Only processes of the user that this process runs as.
    Own,
    /// All that can connect.
    Public,
}

impl Audience {
    /// Returns true if a scraper of this user is answered; one of an unknown user counts as another
    /// user's.
    #[must_use]
    pub fn includes(self, user: Option<u32>) -> bool {
        self == Self::Public || user == Some(rustix::process::geteuid().as_raw())
    }
}

/// The user at the other end of a connection.
pub trait Peer {
    /// Its number; `None` for another machine's, and for one that has hung up.
    fn user(&self) -> Option<u32>;
}

impl Peer for UnixStream {
    fn user(&self) -> Option<u32> {
        rustix::net::sockopt::socket_peercred(self).ok().map(|peer| peer.uid.as_raw())
    }
}

impl Peer for TcpStream {
    fn user(&self) -> Option<u32> {
        let (here, there) = (self.local_addr().ok()?, self.peer_addr().ok()?);
        // An IPv4 socket may talk to one of IPv6, which lists it in another form.
        ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .find_map(|list| owner(&fs::read_to_string(list).ok()?, ends(there), ends(here)))
    }
}

type End = (IpAddr, u16);

fn ends(address: SocketAddr) -> End {
    (address.ip().to_canonical(), address.port())
}

/// The owner of the socket with these ends, in a list as proc_net(5) describes. One that no process has any more has
/// no inode, and an owner that means nothing.
fn owner(list: &str, local: End, remote: End) -> Option<u32> {
    list.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_it = end(fields.next()?)? == local && end(fields.next()?)? == remote;
        let user = fields.nth(4)?;
        let inode = fields.nth(1)?;
        if is_it && inode != "0" { user.parse().ok() } else { None }
    })
}

/// An address and a port in hexadecimal digits; the address in words of 32 bits, each as this machine has it.
fn end(text: &str) -> Option<End> {
    let (address, port) = text.split_once(':')?;
    let words: Vec<[u8; 4]> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok())
        .map(|word| word.map(u32::to_ne_bytes))
        .collect::<Option<_>>()?;
    let ip = match *words.as_slice() {
        [word] => IpAddr::from(word),
        [_, _, _, _] => IpAddr::from(<[u8; 16]>::try_from(words.concat()).ok()?),
        _ => return None,
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    /// As x86 and ARM print it.
    #[cfg(target_endian = "little")]
    #[test]
    fn the_owner_is_that_of_the_other_end() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:23A3 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0\n\
             1: 0100007F:23A3 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1\n\
             2: 0100007F:D431 0100007F:23A3 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0 20 4 30 10 -1\n\
             3: 0100007F:D432 0100007F:23A3 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n";
        let at = |port| (IpAddr::from([127, 0, 0, 1]), port);
        assert_eq!(owner(list, at(0xd431), at(0x23a3)), Some(1001));
        assert_eq!(owner(list, at(0xd432), at(0x23a3)), None, "it has hung up");
        assert_eq!(owner(list, at(0xd433), at(0x23a3)), None);
        assert_eq!(owner("odd\n\n1: x:y z\n", at(1), at(2)), None);
        let mapped = "0000000000000000FFFF00000100007F:0050";
        assert_eq!(end(mapped), Some(at(80)));
        assert_eq!(
            end("00000000000000000000000001000000:0050"),
            Some(("::1".parse().unwrap(), 80))
        );
    }

    #[test]
    fn a_connection_of_ours_is_ours() {
        let own = Some(rustix::process::geteuid().as_raw());
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let to = if address == "[::1]:0" { "::1" } else { "127.0.0.1" };
            let mut client = TcpStream::connect((to, port)).unwrap();
            client.write_all(b"x").unwrap();
            let (server, _) = listener.accept().unwrap();
            assert_eq!(server.user(), own, "{address}");
            assert!(Audience::Own.includes(server.user()));
        }
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(one.user(), own);
        assert!(!Audience::Own.includes(None) && !Audience::Own.includes(own.map(|user| user + 1)));
        assert!(Audience::Public.includes(None));
    }
}
