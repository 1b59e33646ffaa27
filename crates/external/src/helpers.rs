//! What helps whoever holds others. All watched classes share it.

use crate::hold::Stopper;
use crate::traffic::Traffic;
use crate::write_back::WriteBack;

/// The helpers; processes among them are started when they are first needed, and end with us.
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    /// Continues whom we stopped by a signal if we are killed.
    pub stopper: Stopper,
    /// Writes back what the held dirtied.
    pub(crate) write_back: WriteBack,
    /// What all processes of the system move.
    pub(crate) traffic: Traffic,
}
