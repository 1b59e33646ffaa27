//! Values of options that several subcommands take.

use std::num::NonZeroU32;
use std::time::Duration;

use discnice_units::{DurationError, Nanos};

/// Parses a PID. Zero and negative numbers are refused by the subcommand, which says what it takes.
///
/// # Errors
/// The text is no number.
pub fn pid(text: &str) -> Result<i32, &'static str> {
    text.parse().map_err(|_| "not a PID; give a number, as ps(1) and `discnice status` show it")
}

/// Parses a duration as systemd.time(7) has it.
///
/// # Errors
/// It is none.
pub fn duration(text: &str) -> Result<Duration, DurationError> {
    text.parse().map(|Nanos(nanos)| Duration::from_nanos(nanos))
}

/// Parses a number from 1 on.
///
/// # Errors
/// It is none.
pub fn positive(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "give a whole number from 1 to 4294967295")
}
