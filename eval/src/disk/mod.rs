//! The emulated disk: a slow disk of the papers' day, made of memory.
//!
//! ```text
//! program → ext4 → page cache → I/O scheduler → loop device → FUSE → head thread → memory
//!                               (queue depth 4)  (direct I/O)   (model: seek, rotation, transfer)
//! ```
//!
//! `model.rs` says when a disk would answer, `head.rs` answers then, `filesystem.rs` and
//! `server.rs` connect it to the kernel, `up.rs` and `down.rs` make and remove all of it.

mod command;
mod control;
mod device;
mod down;
mod drop_caches;
mod filesystem;
mod head;
mod model;
mod mounts;
mod profile;
mod server;
mod state;
mod stats;
mod up;

pub use command::{DiskCommand, UpArguments};
pub use device::{DeviceCounters, all as loop_devices, number, schedulers, set_scheduler};
pub use profile::ProfileName;
pub use state::{Owner, State};
pub use up::{Wanted, requirements};

use state::Places;

/// The disk that is up.
///
/// # Errors
/// None is, or only its wreck.
pub fn running() -> anyhow::Result<State> {
    drop_caches::running(&Places::default())
}

/// Makes a disk.
///
/// # Errors
/// A requirement is lacking, or a step fails; nothing is left behind.
pub fn up(wanted: &Wanted) -> anyhow::Result<State> {
    up::up(&Places::default(), wanted)
}

/// Removes the disk; processes that still use it get errors.
///
/// # Errors
/// The kernel refuses a step.
pub fn down() -> anyhow::Result<()> {
    down::down(&Places::default(), down::Busy::Detach).map(drop)
}

/// Drops the page cache of the disk that is up.
///
/// # Errors
/// It is in use.
pub fn drop_caches(state: &State) -> anyhow::Result<()> {
    drop_caches::drop_caches(&Places::default(), state)
}

/// Lets the disk answer at once while `prepare` makes files, which are on the platter afterwards.
///
/// # Errors
/// Those of `prepare`, or the disk's process is gone.
pub fn in_no_time<T>(
    state: &State,
    prepare: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let socket = Places::default().socket();
    control::ask(&socket, control::Ask::Hurry)?;
    let result = prepare();
    let synced = mounts::sync(&state.mount);
    control::ask(&socket, control::Ask::Pace)?;
    synced.and(result)
}

/// Writes back everything of the disk's file system.
///
/// # Errors
/// As syncfs(2).
pub fn sync(state: &State) -> anyhow::Result<()> {
    mounts::sync(&state.mount)
}
