//! Rates as people give them: bytes a second, or a part of what `discnice calibrate` measured.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use discnice_ledger::policy::{Resource, Resources};
use discnice_units::{ParseError, Rate};

use crate::bandwidth;

/// A rate that was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// Units a second.
    Rate(Rate),
    /// A part of the disk's bandwidth.
    Part(Percent),
}

/// More than nothing, and at most all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A least rate that was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GivenLeast(Option<Given>);

impl FromStr for GivenLeast {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(|given| Self(Some(given))) }
    }
}

impl GivenLeast {
    /// The rate that it is; `None` for none.
    ///
    /// # Errors
    /// It is a part of a disk that was never measured.
    pub fn resolve(self) -> anyhow::Result<Option<Rate>> {
        let rate = self.0.map(|given| given.resolve(Resource::Total).context("--at-least"));
        self.check()?;
        rate.transpose()
    }

    /// Refuses what no measurement can make a least rate.
    ///
    /// # Errors
    /// It is no bound.
    pub fn check(self) -> anyhow::Result<()> {
        if self.plain().is_some_and(Rate::is_unlimited) {
            bail!("--at-least unlimited is no promise that a disk can keep; give a rate, or none");
        }
        Ok(())
    }

    /// The rate, where no measurement is needed for it.
    pub fn plain(self) -> Option<Rate> {
        self.0.and_then(Given::plain)
    }
}

/// Why a text is no rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wrong {
    /// It is no number with a unit.
    Rate(ParseError),
    /// It is no part of a disk's bandwidth.
    Part,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(error) => error.fmt(f),
            Self::Part => f.write_str(
                "not a share of a disk; give more than 0% and at most 100%, such as 10%",
            ),
        }
    }
}

impl std::error::Error for Wrong {}

impl FromStr for Given {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let Some(number) = text.strip_suffix('%') else {
            return text.parse().map(Self::Rate).map_err(Wrong::Rate);
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let part = number.parse().ok().filter(|part| is_plain && *part > 0.0 && *part <= 100.0);
        part.map(|part| Self::Part(Percent(part))).ok_or(Wrong::Part)
    }
}

impl Given {
    /// The rate that it is for a resource; a part is one of what was measured of the disk below the working directory.
    ///
    /// # Errors
    /// That disk, or this resource, was never measured.
    pub fn resolve(self, resource: Resource) -> anyhow::Result<Rate> {
        self.check(resource)?;
        let percent = match self {
            Self::Rate(rate) => return Ok(rate),
            Self::Part(percent) => percent,
        };
        let Some(measured) = bandwidth::measured_here() else {
            bail!(
                "{percent} of what? The disk below the working directory was not measured; run `discnice calibrate --dir .` first, or give a rate"
            );
        };
        let part = (measured.get() as f64 * percent.0 / 100.0).max(1.0);
        Ok(Rate::per_second(part as u64))
    }

    /// Refuses a part of what is never measured.
    ///
    /// # Errors
    /// It is one.
    pub fn check(self, resource: Resource) -> anyhow::Result<()> {
        match self {
            Self::Part(percent) if !Resources::DISK.contains(resource) => {
                bail!("{percent} of what? No network is measured; give a rate, such as 500K")
            }
            _ => Ok(()),
        }
    }

    /// The rate, where no measurement is needed for it.
    pub const fn plain(self) -> Option<Rate> {
        match self {
            Self::Rate(rate) => Some(rate),
            Self::Part(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_rates() {
        let given = |text: &str| text.parse::<Given>();
        assert_eq!(given("5m"), Ok(Given::Rate(Rate::per_second(5 << 20))));
        assert_eq!(given("10%"), Ok(Given::Part(Percent(10.0))));
        assert_eq!(given("0.5%"), Ok(Given::Part(Percent(0.5))));
        assert_eq!(given("100%"), Ok(Given::Part(Percent(100.0))));
        for text in ["0%", "-1%", "101%", "%", "x%", "nan%", "inf%", "1e1%", "10 %", "+5%"] {
            assert_eq!(given(text), Err(Wrong::Part), "{text}");
        }
        assert_eq!(given("5"), Err(Wrong::Rate(ParseError::NoUnit(5))));
    }

    #[test]
    fn a_least_rate_is_a_rate_or_none() {
        let least = |text: &str| text.parse::<GivenLeast>().map(|least| least.resolve().ok());
        assert_eq!(least("none"), Ok(Some(None)));
        assert_eq!(least("5m"), Ok(Some(Some(Rate::per_second(5 << 20)))));
        assert_eq!(least("unlimited"), Ok(None), "refused");
        assert_eq!(least("5"), Err(Wrong::Rate(ParseError::NoUnit(5))));
    }

    #[test]
    fn a_network_has_no_part() {
        let part: Given = "10%".parse().unwrap();
        let error = part.resolve(Resource::Net).unwrap_err().to_string();
        assert!(error.starts_with("10% of what?"), "{error}");
        assert_eq!(part.plain(), None);
    }
}
