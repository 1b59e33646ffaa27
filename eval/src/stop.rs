//! Stopping cleanly: a signal asks, the work ends at the next step, and what was started is undone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Process groups that are ended as soon as a stop is requested.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// From now on SIGINT, SIGTERM and SIGHUP request a stop instead of ending the process.
///
/// # Errors
/// The kernel refuses a handler or a thread.
pub fn on_signals() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot catch signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
                REQUESTED.store(true, Ordering::SeqCst);
                groups.iter().for_each(|group| kill_group(*group));
            }
        })
        .context("cannot start the signal thread")?;
    Ok(())
}

/// Whether a stop was requested.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Fails once a stop was requested; to be called between two steps.
///
/// # Errors
/// A stop was requested.
pub fn check() -> anyhow::Result<()> {
    if requested() {
        bail!("stopped on request");
    }
    Ok(())
}

/// A process group that a stop request kills; dropped before its leader is reaped.
#[derive(Debug)]
pub struct Doomed(Pid);

impl Doomed {
    /// Registers `group`, and kills it at once if a stop was already requested.
    pub fn new(group: Pid) -> Self {
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push(group);
        if requested() {
            kill_group(group);
        }
        Self(group)
    }

    /// Kills the group now.
    pub fn kill(&self) {
        kill_group(self.0);
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|group| *group != self.0);
    }
}

fn kill_group(group: Pid) {
    // It may be gone already.
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
}
