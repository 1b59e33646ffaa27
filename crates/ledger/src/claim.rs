//! A task that one process of many has, until it ends or gives it up.

use crate::primitive::{AtomicU32, Ordering};

/// The process that has the task; zero for none.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Claim(AtomicU32);

impl Claim {
    /// Takes the task, unless another process that lives has it; returns true if the process has it then.
    pub(crate) fn take(&self, process: u32, lives: impl Fn(u32) -> bool) -> bool {
        let owner = self.0.load(Ordering::Acquire);
        if owner == process {
            return true;
        }
        if owner != 0 && lives(owner) {
            return false;
        }
        let (won, lost) = (Ordering::AcqRel, Ordering::Relaxed);
        self.0.compare_exchange(owner, process, won, lost).is_ok()
    }

    /// Gives the task up, if the process has it.
    pub(crate) fn release(&self, process: u32) {
        let _ = self.0.compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}
