//! Swap on a file in memory, so that a memory-limited group can be overcommitted on any machine. Needs
//! root.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;
use discnice_units::Bytes;

use super::resident::Locked;
use super::{Lab, scratch};
use crate::disk;
use crate::tool;

/// Swap; taken away when dropped.
pub struct Swap {
    device: PathBuf,
    // A kernel that takes back what lies idle would swap the file's pages to the file itself, and
    // the device would then wait for its own write for ever.
    _pages: Locked,
}

impl Swap {
    /// Makes it.
    ///
    /// # Errors
    /// The kernel refuses a step; nothing is left behind.
    pub fn new(lab: &Lab, size: Bytes) -> anyhow::Result<Self> {
        let file = lab.memory().join("swap");
        File::create(&file)
            .and_then(|file| file.set_len(size.get()))
            .with_context(|| format!("cannot make {}", file.display()))?;
        let attach = ["--find".as_ref(), "--show".as_ref(), file.as_os_str()];
        let pages = Locked::new(&file)?;
        let swap = Self { device: tool::run("losetup", attach)?.into(), _pages: pages };
        tool::run("mkswap", [&swap.device])?;
        // Before swap that the machine has of its own.
        tool::run("swapon", ["--priority".as_ref(), "100".as_ref(), swap.device.as_os_str()])?;
        Ok(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        remove(&self.device);
    }
}

/// Removes swap that killed runs have left.
pub fn remove_left_behind() {
    disk::loop_devices(|file| scratch::is_stale(Path::new(file))).iter().for_each(|d| remove(d));
}

fn remove(device: &Path) {
    // It is no swap if a killed run came only half way.
    let _ = tool::run("swapoff", [device]);
    if let Err(error) = tool::run("losetup", ["--detach".as_ref(), device.as_os_str()]) {
        eprintln!("{}{error:#}", crate::message::PREFIX);
    }
}

/// Why there can be none; `None` if there can.
#[must_use]
pub fn lack() -> Option<String> {
    let tools = ["losetup", "mkswap", "swapon", "swapoff"];
    if let Some(name) = tools.into_iter().find(|name| tool::find(name).is_none()) {
        return Some(format!("{name} is not installed"));
    }
    if !rustix::process::geteuid().is_root() {
        return Some("needs root for swap".to_owned());
    }
    fs::metadata("/proc/swaps").is_err().then(|| "this kernel cannot swap".to_owned())
}
