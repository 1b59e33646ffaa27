//! What came of a regulation.

use discnice_units::Nanos;

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// How long the job was regulated.
    pub lasted: Nanos,
    /// How long it was stopped because its progress was poor.
    pub suspended: Nanos,
    /// How often.
    pub suspensions: u64,
    /// How often it was not stopped, or continued early, because others waited for a lock that it holds.
    pub let_on: u64,
    /// How often it was not stopped though its progress was poor, because nothing on this machine was the cause.
    pub elsewhere: u64,
    /// Looks at which a metric could not be read, so that the job went on unregulated.
    pub blind: u64,
}
