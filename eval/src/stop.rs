//! Stopping cleanly: a signal asks, the work ends at the next step, and what was started is undone.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static REQUESTED: AtomicBool = AtomicBool::new(false);

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
                REQUESTED.store(true, Ordering::SeqCst);
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
