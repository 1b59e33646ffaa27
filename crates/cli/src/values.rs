//! Values of options that several subcommands take.

use std::num::NonZeroU32;
use std::time::Duration;

use discnice_units::{DurationError, Nanos};

/// A process id. That zero and negative numbers are none is told with what the subcommand takes.
///
/// # Errors
/// It is no number.
pub fn pid(text: &str) -> Result<i32, &'static str> {
    text.parse().map_err(|_| "no process id; give a number, as ps(1) and `discnice status` show it")
}

/// A duration as systemd.time(7) has it.
///
/// # Errors
/// It is none.
pub fn duration(text: &str) -> Result<Duration, DurationError> {
    text.parse().map(|Nanos(nanos)| Duration::from_nanos(nanos))
}

/// A number from 1 on.
///
/// # Errors
/// It is none.
pub fn positive(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "give a whole number from 1 to 4294967295")
}
