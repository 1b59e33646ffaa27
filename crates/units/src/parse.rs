//! Parsing of what people type.

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Rate};

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Nothing was typed.
    Empty,
    /// Not a decimal number followed by a unit.
    NotANumber,
    /// A number, but its unit is none that we know.
    UnknownUnit,
    /// Negative, zero or less than one whole unit.
    TooSmall,
    /// 2^63 or more.
    TooLarge,
}

/// What is accepted, in one phrase, for error messages.
pub const ACCEPTED: &str =
    "a number with B, K, M, G or T (1024) or kB, MB, GB, TB (1000), such as 5M or 500kB";

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::Empty => "empty",
            Self::NotANumber => "not a number with a unit",
            Self::UnknownUnit => "unknown unit",
            Self::TooSmall => "must be at least 1",
            Self::TooLarge => "too large",
        };
        write!(f, "{why}; give {ACCEPTED}")
    }
}

impl core::error::Error for ParseError {}

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("k", 1 << 10),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// The largest quantity: everything above is a typing error, and sums of two still fit 64 bits.
const MAX: u128 = 1 << 63;

/// Parses `12`, `1.5M`, `500kB`: a decimal fraction and a unit without a space between.
fn quantity(text: &str) -> Result<u64, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    if text.starts_with('-') {
        return Err(ParseError::TooSmall);
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return Err(ParseError::NotANumber);
    }
    let factor = UNITS.iter().find(|(name, _)| *name == unit).ok_or(ParseError::UnknownUnit)?.1;
    let scaled = decimal(whole, fraction, u128::from(factor)).ok_or(ParseError::TooLarge)?;
    match scaled {
        0 => Err(ParseError::TooSmall),
        n if n >= MAX => Err(ParseError::TooLarge),
        n => u64::try_from(n).map_err(|_| ParseError::TooLarge),
    }
}

/// `whole.fraction * factor`, rounded down; `None` on overflow.
fn decimal(whole: &str, fraction: &str, factor: u128) -> Option<u128> {
    let mut total = 0u128;
    for digit in whole.bytes() {
        total = total.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
    }
    total = total.checked_mul(factor)?;
    let mut place = factor;
    let mut numerator = 0u128;
    let mut denominator = 1u128;
    // Digits beyond the eighteenth are below one byte at every unit we know.
    for digit in fraction.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    place = place.checked_mul(numerator)? / denominator;
    total.checked_add(place)
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        quantity(text).map(Self::new)
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "unlimited" {
            return Ok(Self::UNLIMITED);
        }
        quantity(text.strip_suffix("/s").unwrap_or(text)).map(Self::per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit() {
        for (text, bytes) in [
            ("1", 1),
            ("7B", 7),
            ("5k", 5 << 10),
            ("5K", 5 << 10),
            ("5KiB", 5 << 10),
            ("5M", 5 << 20),
            ("1.5M", 3 << 19),
            ("2GiB", 2 << 30),
            ("500kB", 500_000),
            ("5MB", 5_000_000),
            ("0.25T", 1 << 38),
        ] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes::new(bytes)), "{text}");
            assert_eq!(text.parse::<Rate>(), Ok(Rate::per_second(bytes)), "{text}");
        }
        assert_eq!("5M/s".parse::<Rate>(), Ok(Rate::per_second(5 << 20)));
        assert_eq!("unlimited".parse::<Rate>(), Ok(Rate::UNLIMITED));
    }

    #[test]
    fn what_is_refused() {
        use ParseError::{Empty, NotANumber, TooLarge, TooSmall, UnknownUnit};
        for (text, why) in [
            ("", Empty),
            ("0", TooSmall),
            ("-5M", TooSmall),
            ("5Q", UnknownUnit),
            ("1e400", UnknownUnit),
            ("5 M", UnknownUnit),
            ("M", NotANumber),
            (".5M", NotANumber),
            ("1.", NotANumber),
            ("1.2.3", NotANumber),
            ("0.1B", TooSmall),
            ("99999999999999999999T", TooLarge),
            ("9223372036854775808", TooLarge),
        ] {
            assert_eq!(text.parse::<Rate>(), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,40}") {
            let _ = text.parse::<Rate>();
        }

        #[test]
        fn whole_numbers_are_exact(n in 1u64..1 << 20) {
            prop_assert_eq!(format!("{n}MiB").parse::<Bytes>(), Ok(Bytes::new(n << 20)));
            prop_assert_eq!(format!("{n}MB").parse::<Bytes>(), Ok(Bytes::new(n * 1_000_000)));
        }
    }
}
