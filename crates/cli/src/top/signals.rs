//! Signals that want the view to end or to stop.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;

/// Signals that want the view to end or to stop.
pub struct Signals {
    /// The last one that wants it to end; zero for none.
    end: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Watches from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch() -> io::Result<Self> {
        let signals = Self { end: Arc::default(), stop: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.end), number)?;
        }
        flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        Ok(signals)
    }

    /// The signal that wants the view to end.
    pub fn end(&self) -> Option<i32> {
        i32::try_from(self.end.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }

    /// Whether the view shall stop; once for each time.
    pub fn stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    /// Ends this process as the signal would have.
    pub fn repeat(&self, signal: i32) -> ExitCode {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        ExitCode::from(128u8.saturating_add(signal.unsigned_abs() as u8))
    }
}
