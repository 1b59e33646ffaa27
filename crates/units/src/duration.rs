//! Parsing of durations as systemd.time(7) has them: `90`, `5min`, `1h 30min`.

use core::fmt;
use core::str::FromStr;

use crate::Nanos;

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationError {
    /// Not numbers, each with a unit of time.
    NotADuration,
    /// A number, but its unit is none that we know.
    UnknownUnit,
    /// More than about 584 years.
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotADuration => "not a duration",
            Self::UnknownUnit => "unknown unit of time",
            Self::TooLong => "too long",
        })?;
        f.write_str(
            "; give seconds, or numbers with ms, s, min, h, d or w, such as 90, 5min or 1h30min",
        )
    }
}

impl core::error::Error for DurationError {}

const SECOND: u64 = Nanos::SECOND.0;

/// Units with all their names.
const UNITS: &[(&[&str], u64)] = &[
    (&["ns", "nsec"], 1),
    (&["us", "usec", "µs", "μs"], 1_000),
    (&["ms", "msec"], 1_000_000),
    (&["", "s", "sec", "second", "seconds"], SECOND),
    (&["m", "min", "minute", "minutes"], 60 * SECOND),
    (&["h", "hr", "hour", "hours"], 3_600 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["w", "week", "weeks"], 604_800 * SECOND),
];

impl FromStr for Nanos {
    type Err = DurationError;

    /// Adds up parts such as `1h 30min`; a number without a unit counts in seconds.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let mut rest = text.trim();
        let mut sum = None;
        while !rest.is_empty() {
            let (part, behind) = part(rest)?;
            let before: u64 = sum.unwrap_or(0);
            sum = Some(before.checked_add(part).ok_or(DurationError::TooLong)?);
            rest = behind.trim_start();
        }
        sum.map(Self).ok_or(DurationError::NotADuration)
    }
}

/// The nanoseconds of the first part, and what stands behind it.
fn part(text: &str) -> Result<(u64, &str), DurationError> {
    let is_in_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, behind) = text.split_at(text.find(|c| !is_in_number(c)).unwrap_or(text.len()));
    let behind = behind.trim_start();
    let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
    let (unit, behind) = behind.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let malformed = fraction.contains('.') || number.ends_with('.');
    if whole.is_empty() || malformed {
        return Err(DurationError::NotADuration);
    }
    let known = UNITS.iter().find(|(names, _)| names.contains(&unit));
    let (_, nanos) = known.ok_or(DurationError::UnknownUnit)?;
    let whole: u64 = whole.parse().map_err(|_| DurationError::TooLong)?;
    let whole = whole.checked_mul(*nanos).ok_or(DurationError::TooLong)?;
    let part = whole.checked_add(fraction_of(fraction, *nanos)).ok_or(DurationError::TooLong)?;
    Ok((part, behind))
}

/// Decimal digits behind the point, as a part of a unit.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    // What is behind the ninth digit is less than a nanosecond of a second.
    let digits = digits.bytes().take(9);
    let tenths = digits.fold((0u128, 1u128), |(sum, scale), digit| {
        (sum * 10 + u128::from(digit - b'0'), scale * 10)
    });
    u64::try_from(tenths.0 * u128::from(unit) / tenths.1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_systemd_has_them() {
        const MINUTE: u64 = 60 * SECOND;
        for (text, nanos) in [
            ("0", 0),
            ("90", 90 * SECOND),
            ("90s", 90 * SECOND),
            ("1.5", 3 * SECOND / 2),
            ("5min", 5 * MINUTE),
            ("5 minutes", 5 * MINUTE),
            ("1h30min", 90 * MINUTE),
            ("1h 30min", 90 * MINUTE),
            (" 1 hour 30 m ", 90 * MINUTE),
            ("250ms", SECOND / 4),
            ("0.25s", SECOND / 4),
            ("2d", 2 * 24 * 60 * MINUTE),
            ("1w", 7 * 24 * 60 * MINUTE),
            ("3us", 3_000),
            ("3µs", 3_000),
        ] {
            assert_eq!(text.parse::<Nanos>(), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        use DurationError::{NotADuration, TooLong, UnknownUnit};
        for (text, why) in [
            ("", NotADuration),
            ("  ", NotADuration),
            ("soon", NotADuration),
            ("-1", NotADuration),
            (".5", NotADuration),
            ("5.", NotADuration),
            ("1.2.3", NotADuration),
            ("5min,", NotADuration),
            ("06:00", NotADuration),
            ("5 parsecs", UnknownUnit),
            ("5M", UnknownUnit),
            ("99999999999999999999", TooLong),
            ("99999999w", TooLong),
        ] {
            assert_eq!(text.parse::<Nanos>(), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,40}") {
            let _ = text.parse::<Nanos>();
        }
    }
}
