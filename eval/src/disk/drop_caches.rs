//! `disk drop`: the page cache of this one disk goes, by unmounting and mounting it again.

use anyhow::{Context, bail};

use super::control::{self, Ask};
use super::state::{Places, State};
use super::{mounts, up};

/// The disk that is up.
///
/// # Errors
/// None is, or only its wreck.
pub fn running(places: &Places) -> anyhow::Result<State> {
    up::need_root()?;
    match places.load() {
        Some(state) if state.server.is_alive() => Ok(state),
        Some(_) => bail!("the disk's process is gone; clean up with: discnice-eval disk down"),
        None => bail!("no disk is up; make one with: discnice-eval disk up"),
    }
}

/// Drops the caches of the disk that is up. Takes no emulated time; counters stand still.
///
/// # Errors
/// The file system is in use, or cannot be mounted again.
pub fn drop_caches(places: &Places, state: &State) -> anyhow::Result<()> {
    let device = state.loop_device.as_ref().context("the disk has no loop device")?;
    control::ask(&places.socket(), Ask::Hurry)?;
    let remounted = mounts::unmount_patiently(&state.mount)
        .and_then(|()| mounts::mount_ext4(device, &state.mount));
    control::ask(&places.socket(), Ask::Pace)?;
    remounted
}
