//! A node on a network of 100 Mbit/s: a network namespace, joined to this machine's by a link that is
//! as slow. What runs on the node shares the link with everything else there. Needs root; the
//! programs do not.

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::Context;

use super::Lab;
use crate::tool;

const NAME: &str = "discnice-eval";
/// Our end; its kind of name says that it is no network of its own (docs/adr/0007-giving-way.md).
const OURS: &str = "veth-dneval";
/// The node's end, which is all of the network that it has.
const THEIRS: &str = "eth0";
/// Where this machine listens, and the node: addresses for benchmarks (RFC 2544, appendix C.2.2).
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 1);
/// As [`MACHINE`].
pub const NODE: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 2);
/// The slow end. tc-tbf(8): 50 ms of queue, as a plain Ethernet of the time had.
const SLOW: [&str; 7] = ["tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms"];

/// The link; removed with the node when dropped, which needs its programs to have ended.
pub struct Link(());

impl Link {
    /// Makes node and link.
    ///
    /// # Errors
    /// The kernel refuses a step; nothing is left behind.
    pub fn new() -> anyhow::Result<Self> {
        remove_left_behind();
        tool::run("ip", ["netns", "add", NAME]).context("cannot make a network namespace")?;
        let link = Self(());
        ip(&["link", "add", OURS, "type", "veth", "peer", "name", THEIRS, "netns", NAME])?;
        ip(&["address", "add", &format!("{MACHINE}/30"), "dev", OURS])?;
        ip(&["link", "set", OURS, "up"])?;
        ip(&["-n", NAME, "address", "add", &format!("{NODE}/30"), "dev", THEIRS])?;
        ip(&["-n", NAME, "link", "set", THEIRS, "up"])?;
        let slow = ["-n", NAME, "qdisc", "add", "dev", THEIRS, "root"];
        tool::run("tc", slow.into_iter().chain(SLOW)).context("cannot make the link slow")?;
        Ok(link)
    }

    /// Returns the command, to run on the node.
    #[must_use]
    pub fn command(&self, lab: &Lab, command: &Command) -> Command {
        let (uid, gid) = (lab.disk.owner.uid.to_string(), lab.disk.owner.gid.to_string());
        let mut inside = lab.command_as_root("nsenter");
        inside.arg(format!("--net=/run/netns/{NAME}"));
        inside.args(["setpriv", "--reuid", &uid, "--regid", &gid, "--clear-groups", "--"]);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        remove_left_behind();
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    tool::run("ip", arguments).map(drop).context("cannot make a link")
}

/// Removes what a killed run has left, if anything; the link goes with its namespace.
pub fn remove_left_behind() {
    if std::path::Path::new("/run/netns").join(NAME).exists() {
        // What cannot be removed now is in the way of the next link, which says so.
        let _ = tool::run("ip", ["netns", "delete", NAME]);
    }
    if std::path::Path::new("/sys/class/net").join(OURS).exists() {
        let _ = tool::run("ip", ["link", "delete", OURS]);
    }
}

/// Why a link cannot be had; `None` if it can.
#[must_use]
pub fn lack() -> Option<String> {
    let tools = ["ip", "tc", "nsenter", "setpriv"];
    let missing = tools.into_iter().find(|name| tool::find(name).is_none());
    if let Some(name) = missing {
        return Some(format!("{name} is not installed"));
    }
    (!rustix::process::geteuid().is_root()).then(|| "needs root for a network".to_owned())
}
