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
    /// A rate of few bytes a second, probably with its unit forgotten: the number.
    NoUnit(u64),
}

/// What is accepted, in one phrase, for error messages.
pub const ACCEPTED: &str =
    "a number with B, K, M, G or T (1024) or KB, MB, GB, TB (1000), such as 5M or 500KB";

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::NoUnit(number) => {
                return write!(
                    f,
                    "{number} what? {number}M is {number} MiB/s, {number}B bytes a second"
                );
            }
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

/// Units as people type them, in any case.
const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Rates below this need a unit: no disk is that slow, and `5` usually means `5M`.
const WITHOUT_UNIT: u64 = 4096;

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
    let factor = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or(ParseError::UnknownUnit)?
        .1;
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
        let bytes = quantity(text.strip_suffix("/s").unwrap_or(text))?;
        if bytes < WITHOUT_UNIT && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseError::NoUnit(bytes));
        }
        Ok(Self::per_second(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit() {
        for (text, bytes) in [
            ("4096", 4096),
            ("7B", 7),
            ("7b", 7),
            ("5k", 5 << 10),
            ("5K", 5 << 10),
            ("5KiB", 5 << 10),
            ("5M", 5 << 20),
            ("1.5M", 3 << 19),
            ("2GiB", 2 << 30),
            ("500kB", 500_000),
            ("5MB", 5_000_000),
            ("5m", 5 << 20),
            ("5mb", 5_000_000),
            ("5mib", 5 << 20),
            ("0.25T", 1 << 38),
        ] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes::new(bytes)), "{text}");
            assert_eq!(text.parse::<Rate>(), Ok(Rate::per_second(bytes)), "{text}");
        }
        assert_eq!("5M/s".parse::<Rate>(), Ok(Rate::per_second(5 << 20)));
        assert_eq!("5MiB/s".parse::<Rate>(), Ok(Rate::per_second(5 << 20)));
        assert_eq!("unlimited".parse::<Rate>(), Ok(Rate::UNLIMITED));
    }

    #[test]
    fn a_small_rate_without_a_unit_is_a_unit_forgotten() {
        assert_eq!("5".parse::<Bytes>(), Ok(Bytes::new(5)));
        assert_eq!("5".parse::<Rate>(), Err(ParseError::NoUnit(5)));
        assert_eq!("4095".parse::<Rate>(), Err(ParseError::NoUnit(4095)));
        assert_eq!("5B".parse::<Rate>(), Ok(Rate::per_second(5)));
        assert_eq!("5/s".parse::<Rate>(), Ok(Rate::per_second(5)));
        let told = ParseError::NoUnit(5).to_string();
        assert_eq!(told, "5 what? 5M is 5 MiB/s, 5B bytes a second");
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
