//! What helps whoever holds others: processes, and what is known of the system. All watched classes share it.

use crate::census::Census;
use crate::hold::Stopper;
use crate::write_back::WriteBack;

/// The helpers; each process is started when it is first needed, and ends with us.
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    /// Continues whom we stopped by a signal if we are killed.
    pub stopper: Stopper,
    /// Writes back what the held dirtied.
    pub(crate) write_back: WriteBack,
    /// Who was born.
    pub(crate) census: Census,
}
