//! Signals that ask a subcommand to end in an orderly way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Set once such a signal has come; from now on they end this process no more by themselves.
///
/// # Errors
/// The kernel's.
pub fn asked_to_end() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}
