//! Values of limits, as they are typed.

use std::num::NonZeroU64;
use std::str::FromStr;

use clap::ValueEnum;
use discnice_ledger::policy::choice::{LONGEST_SLEEPS, SHORTEST_SLEEPS};
use discnice_ledger::policy::limits::WEIGHT_MAX;
use discnice_ledger::policy::{Choice, When};
use discnice_units::{Bytes, DurationError, Nanos, ParseError, Rate};
use serde::{Deserialize, Serialize};

use crate::commands::rate::Given;

/// Less needs a unit, as `5` usually means `5G`.
const WITHOUT_UNIT: u64 = 4096;

/// What happens to the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// What the job reads stays cached as long as the kernel likes.
    Keep,
    /// What the job reads is dropped from the cache again.
    Protect,
}

impl Cache {
    /// That of a class which protects the page cache, or does not.
    pub fn of(protects: bool) -> Self {
        if protects { Self::Protect } else { Self::Keep }
    }
}

/// What happens on the network without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shared {
    /// The job takes what its connections get.
    Share,
    /// The job gives way to others whenever its connections see a queue.
    Yield,
}

impl Shared {
    /// That of a class which gives way, or does not.
    pub fn of(yields: bool) -> Self {
        if yields { Self::Yield } else { Self::Share }
    }
}

/// A policy as it was given.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "OneOrMore")]
pub(super) enum PolicyArg {
    /// By its name.
    Named(Choice),
    /// The user's own: the path of a program, and its arguments.
    Program(Vec<String>),
}

/// A text or several, as config.toml has them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a text in quotes, or a list of them")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl TryFrom<OneOrMore> for PolicyArg {
    type Error = &'static str;

    fn try_from(given: OneOrMore) -> Result<Self, Self::Error> {
        let words = match given {
            OneOrMore::One(word) => vec![word],
            OneOrMore::More(words) => words,
        };
        let first = words.first().map(String::as_str).unwrap_or_default();
        match Choice::named(first).filter(|_| words.len() == 1) {
            None if first.starts_with('/') => Ok(Self::Program(words)),
            Some(choice) if choice != Choice::Program => Ok(Self::Named(choice)),
            _ => Err("give window, sleep, or a program's path from / on"),
        }
    }
}

/// A bound of sleeps; `None` for the usual one.
#[derive(Debug, Clone, Copy)]
pub(super) struct SleepBound(pub(super) Option<Nanos>);

fn sleep_bound(text: &str, (least, most): (Nanos, Nanos)) -> Result<SleepBound, String> {
    if text == "usual" {
        return Ok(SleepBound(None));
    }
    let sleep: Nanos = text.parse().map_err(|error: DurationError| error.to_string())?;
    match (least..=most).contains(&sleep) {
        true => Ok(SleepBound(Some(sleep))),
        false => Err(format!("give {least} to {most}, or usual")),
    }
}

pub(super) fn shortest_sleep(text: &str) -> Result<SleepBound, String> {
    sleep_bound(text, SHORTEST_SLEEPS)
}

pub(super) fn longest_sleep(text: &str) -> Result<SleepBound, String> {
    sleep_bound(text, LONGEST_SLEEPS)
}

/// A size, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling(pub(super) Option<Bytes>);

impl FromStr for Ceiling {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "unlimited" { Ok(Self(None)) } else { text.parse().map(|size| Self(Some(size))) }
    }
}

/// Bytes in all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Total {
    /// So many, or no bound.
    Most(Option<Bytes>),
    /// So many more than before.
    More(Bytes),
}

impl FromStr for Total {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |text: &str| match text.parse::<Bytes>() {
            Ok(size)
                if size.get() < WITHOUT_UNIT && text.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Err(format!("{text} what? {text}G is {text} GiB, {text}B bytes"))
            }
            size => size.map_err(|error| error.to_string()),
        };
        match text.strip_prefix('+') {
            _ if text == "unlimited" => Ok(Self::Most(None)),
            Some(more) => size(more).map(Self::More),
            None => size(text).map(|size| Self::Most(Some(size))),
        }
    }
}

impl Total {
    /// On top of what it was before.
    pub(super) fn over(self, before: Option<Bytes>) -> Option<Bytes> {
        match self {
            Self::Most(most) => most,
            Self::More(more) => Some(before.map_or(more, |before| before.plus(more))),
        }
    }
}

/// A number of operations a second, or `unlimited`.
pub(super) fn count(text: &str) -> Result<Given, &'static str> {
    if text == "unlimited" {
        return Ok(Given::Rate(Rate::UNLIMITED));
    }
    let number = text.parse::<NonZeroU64>().ok().filter(|number| number.get() < 1 << 63);
    number
        .map(|number| Given::Rate(Rate::per_second(number.get())))
        .ok_or("give a whole number from 1 on, or `unlimited`")
}

pub(super) fn when(text: &str) -> Result<When, &'static str> {
    match text {
        "always" => Ok(When::Always),
        "busy" => Ok(When::Busy),
        _ => Err("give always or busy"),
    }
}

pub(super) fn weight(text: &str) -> Result<u32, &'static str> {
    let number = text.parse().ok().filter(|number| (1..=WEIGHT_MAX).contains(number));
    number.ok_or("give a whole number from 1 to 10000")
}

/// On the command line, where a program's path would be lost with the command.
pub(super) fn policy(text: &str) -> Result<PolicyArg, &'static str> {
    let named = Choice::named(text).map(PolicyArg::Named);
    named.ok_or("give window, sleep or program; the program itself stands in config.toml")
}

pub(super) fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no"),
    }
}
