//! What network interfaces have moved.

use core::ffi::CStr;

use super::TrafficCounters;
use crate::file::status_behind;
use crate::lines::{lines, number};
use crate::raw::Errno;

/// What the names of interfaces begin with that only pass on traffic of another one, or have none: the loopback, ends of
/// containers and of virtual machines, bridges, bonds, VLANs, tunnels.
const VIRTUAL: [&[u8]; 30] = [
    b"lo",
    b"veth",
    b"docker",
    b"cni",
    b"flannel",
    b"cali",
    b"lxcbr",
    b"lxdbr",
    b"podman",
    b"br-",
    b"virbr",
    b"vmbr",
    b"vnet",
    b"tap",
    b"macvlan",
    b"macvtap",
    b"ipvlan",
    b"bond",
    b"team",
    b"vlan",
    b"vxlan",
    b"tun",
    b"wg",
    b"tailscale",
    b"zt",
    b"sit",
    b"gre",
    b"ip6tnl",
    b"dummy",
    b"ifb",
];

/// What network interfaces have moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interfaces {
    /// Bytes with their headers.
    pub bytes: TrafficCounters,
    /// The packets that they came and went in.
    pub packets: TrafficCounters,
    /// Number of the network namespace that they are all of; zero if unknown. namespaces(7)
    pub namespace: u64,
}

impl Interfaces {
    /// A line of /proc/net/dev: the name of an interface, and what it has moved.
    fn parse(line: &[u8]) -> Option<(&[u8], Self)> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, numbers) = line.split_at_checked(colon)?;
        let fields =
            numbers.get(1..)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let mut fields = fields.map(number);
        let received = (fields.next()?, fields.next()?);
        let sent = (fields.nth(6)?, fields.next()?);
        let seen = Self {
            bytes: TrafficCounters { inward: received.0, outward: sent.0 },
            packets: TrafficCounters { inward: received.1, outward: sent.1 },
            namespace: 0,
        };
        Some((name.trim_ascii_start(), seen))
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.plus(other.bytes),
            packets: self.packets.plus(other.packets),
            namespace: self.namespace,
        }
    }
}

/// What the interfaces of a namespace have moved, line by line.
#[derive(Debug, Clone, Copy, Default)]
struct Lines {
    /// What leaves the machine or the container, if there is such an interface.
    own: Option<Interfaces>,
    /// What passes virtual interfaces.
    passed_on: Interfaces,
}

impl Lines {
    fn add(&mut self, line: &[u8]) {
        let Some((name, one)) = Interfaces::parse(line) else { return };
        if !is_virtual(name) {
            self.own = Some(self.own.unwrap_or_default().plus(one));
        } else if name != b"lo" {
            // What passes the loopback passes no other interface.
            self.passed_on = self.passed_on.plus(one);
        }
    }

    /// What all have moved: in a namespace with nothing but a tunnel or a bridge, what passes that.
    fn all(self) -> Interfaces {
        self.own.unwrap_or(self.passed_on)
    }
}

/// Returns true for an interface of [`VIRTUAL`], a numbered bridge (`br0`), and a VLAN with a point in its name (`eth0.100`).
fn is_virtual(name: &[u8]) -> bool {
    let is_numbered = |stem: &[u8]| {
        name.strip_prefix(stem).and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
    };
    VIRTUAL.iter().any(|prefix| name.starts_with(prefix))
        || is_numbered(b"br")
        || name.contains(&b'.')
}

/// What the network interfaces of this process's namespace moved, the loopback excepted.
/// proc_pid_net(5)
///
/// # Errors
/// As [`super::disks`].
pub fn network() -> Result<Interfaces, Errno> {
    let mut all = network_in(c"/proc/net/dev")?;
    all.namespace = status_behind(c"/proc/self/ns/net").map_or(0, |status| status.inode);
    Ok(all)
}

/// What the interfaces of another list have moved, of which namespace is not told.
///
/// # Errors
/// As [`super::disks`].
pub fn network_in(list: &CStr) -> Result<Interfaces, Errno> {
    let mut seen = Lines::default();
    lines(list, |line| seen.add(line))?;
    Ok(seen.all())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::format;

    use super::*;

    #[test]
    fn a_line_of_interfaces() {
        let line = b"  eth0: 1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0";
        let seen = Interfaces {
            bytes: TrafficCounters { inward: 1000, outward: 2000 },
            packets: TrafficCounters { inward: 1, outward: 2 },
            namespace: 0,
        };
        assert_eq!(Interfaces::parse(line), Some((&b"eth0"[..], seen)));
        assert_eq!(all(&["lo"]), TrafficCounters::default());
        assert_eq!(Interfaces::parse(b" face |bytes packets"), None);
    }

    /// What interfaces of these names have moved, each 1000 bytes in and 2000 out.
    fn all(names: &[&str]) -> TrafficCounters {
        let mut seen = Lines::default();
        for name in names {
            seen.add(format!("{name:>6}: 1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0").as_bytes());
        }
        seen.all().bytes
    }

    #[test]
    fn what_passes_two_interfaces_counts_once() {
        let (once, twice) = (
            TrafficCounters { inward: 1000, outward: 2000 },
            TrafficCounters { inward: 2000, outward: 4000 },
        );
        for own in ["enp0s31f6", "wlan0", "wlp2s0", "usb0", "wwan0", "ppp0", "bnep0", "brcm0"] {
            assert_eq!(all(&["lo", "eth0", own]), twice, "{own}");
        }
        for passed_on in [
            "lo",
            "veth1a2b",
            "docker0",
            "br-3f",
            "virbr0",
            "tun0",
            "tap3",
            "br0",
            "vmbr1",
            "bond0",
            "team0",
            "wg0",
            "tailscale0",
            "eth0.100",
            "bond0.7",
            "vlan20",
            "macvlan0",
            "macvtap0",
            "vxlan7",
            "cni0",
            "flannel.1",
            "cali12ab",
            "dummy0",
            "ifb0",
            "sit0",
            "gre0",
            "ip6tnl0",
        ] {
            assert_eq!(all(&["lo", "eth0", passed_on]), once, "{passed_on}");
        }
    }

    #[test]
    fn a_tunnel_counts_where_there_is_nothing_else() {
        assert_eq!(all(&["lo", "wg0"]), TrafficCounters { inward: 1000, outward: 2000 });
    }
}
