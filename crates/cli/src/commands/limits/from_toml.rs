//! Limits in the configuration file: each is a text, or a whole number.

use std::fmt::Display;
use std::str::FromStr;

use discnice_ledger::policy::When;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::{self, SleepBound};
use crate::commands::rate::Given;

/// A value of the configuration file: a text, or a whole number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(i64),
    Text(String),
}

impl Value {
    fn parse<'de, D: Deserializer<'de>, T, E: Display>(
        from: D,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, D::Error> {
        let text = match Self::deserialize(from) {
            Ok(Self::Number(number)) => number.to_string(),
            Ok(Self::Text(text)) => text,
            Err(_) => return Err(D::Error::custom("give a text in quotes or a whole number")),
        };
        parse(&text).map(Some).map_err(D::Error::custom)
    }
}

/// A value that its type reads from a text.
pub(super) fn parsed<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    Value::parse(from, str::parse::<T>)
}

pub(super) fn shortest_sleep<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SleepBound>, D::Error> {
    Value::parse(from, value::shortest_sleep)
}

pub(super) fn longest_sleep<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SleepBound>, D::Error> {
    Value::parse(from, value::longest_sleep)
}

pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Given>, D::Error> {
    Value::parse(from, value::count)
}

pub(super) fn when<'de, D: Deserializer<'de>>(from: D) -> Result<Option<When>, D::Error> {
    Value::parse(from, value::when)
}

pub(super) fn weight<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Value::parse(from, value::weight)
}
