//! Signals that want the view to end or to stop.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use discnice_processes::wishes::bit;
use discnice_sys::procfs;
use libc::{
    SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGURG, SIGWINCH,
};
use signal_hook::flag;

/// Signals that do not end a process, that it cannot catch, or that tell of a fault in it. signal(7)
const OTHERS: [i32; 13] = [
    SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGURG, SIGWINCH,
];

/// Signals that want the view to end or to stop.
pub struct Signals {
    /// The last one that wants it to end; zero for none.
    end: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Watches from now on for all that would end this process.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch() -> io::Result<Self> {
        let signals = Self { end: Arc::default(), stop: Arc::default() };
        let others = OTHERS.iter().fold(0, |mask, signal| mask | bit(*signal));
        let ignored = procfs::ignored_signals(process::id());
        // Between these two are those that the C library keeps for itself.
        let all = (1..=libc::SIGSYS).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        for signal in all.filter(|signal| (others | ignored) & bit(*signal) == 0) {
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
}
