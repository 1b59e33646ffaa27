//! `disk down`: whatever is left of a disk, dead or alive, goes.
//!
//! The kernel's own lists are asked what is there, because the record may be missing or stale:
//! after kill -9, a crash half way up, or a removed state directory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal};

use super::control::{self, Ask};
use super::state::{Places, State};
use super::{device, mounts};
use crate::proc::ProcessId;
use crate::removal::unless_missing;

/// How long the serving process may take to notice that its file system is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to do with a file system that is still in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Leave everything as it is and say so.
    Refuse,
    /// Take it out of the tree; its users get errors.
    Detach,
}

/// Takes down what there is; returns whether there was anything.
///
/// # Errors
/// The file system is in use (with [`Busy::Refuse`]), or the kernel refuses a step; what could be
/// undone is undone.
pub fn down(places: &Places, busy: Busy) -> anyhow::Result<bool> {
    let state = places.load();
    let server = state.as_ref().map(|state| state.server).filter(|server| server.is_alive());
    let healthy = control::ask(&places.socket(), Ask::Hurry).is_ok();
    if !healthy {
        // A hung server would hang the process that unmounts; without it the kernel answers with
        // errors.
        server.map_or(Ok(()), kill)?;
    }
    let devices = loop_devices(places, state.as_ref());
    let mut found = !devices.is_empty() || server.is_some();
    for mounted in mounts::all()?.iter().rev() {
        if devices.contains(&mounted.source) {
            unmount(&mounted.target, busy, healthy)?;
        }
    }
    for device in &devices {
        device::detach(device)?;
    }
    for mounted in mounts::all()?.iter().rev().filter(|m| m.target == places.fuse()) {
        found = true;
        unmount(&mounted.target, Busy::Detach, healthy)?;
    }
    if let Some(server) = server {
        end(server)?;
    }
    if let Some(state) = state.filter(|state| state.made_mount_point) {
        unless_missing(std::fs::remove_dir(&state.mount), &state.mount)?;
    }
    found |= places.root().exists();
    places.remove()?;
    Ok(found)
}

fn loop_devices(places: &Places, state: Option<&State>) -> Vec<std::path::PathBuf> {
    let mut devices = device::attached_to(&places.image());
    // The record alone is not believed: the number may belong to another user's image by now.
    if let Some(recorded) = state.and_then(|state| state.loop_device.clone()) {
        let ours = device::attribute(&recorded, "loop/backing_file")
            .is_ok_and(|file| Path::new(&file).starts_with(places.fuse()));
        if ours && !devices.contains(&recorded) {
            devices.push(recorded);
        }
    }
    devices
}

fn unmount(target: &Path, busy: Busy, healthy: bool) -> anyhow::Result<()> {
    match mounts::unmount_patiently(target) {
        Err(_) if busy == Busy::Detach || !healthy => mounts::detach(target),
        other => other,
    }
}

fn end(server: ProcessId) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    while server.is_alive() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    if server.is_alive() { kill(server) } else { Ok(()) }
}

fn kill(server: ProcessId) -> anyhow::Result<()> {
    let pid = i32::try_from(server.pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("the record names an impossible process")?;
    match rustix::process::kill_process(pid, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).context("cannot end the disk's process"),
    }
}
