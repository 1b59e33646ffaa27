//! Processes that help whoever holds others. All watched classes share them.

use crate::hold::Stopper;
use crate::write_back::WriteBack;

/// The helpers; each is started when it is first needed, and ends with us.
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    /// Continues whom we stopped by a signal if we are killed.
    pub stopper: Stopper,
    /// Writes back what the held dirtied.
    pub(crate) write_back: WriteBack,
}
