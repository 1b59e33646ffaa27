//! Limits in the configuration file: each is a text, or a whole number.

use std::fmt::Display;

use discnice_policy::When;
use discnice_units::{Bytes, Nanos};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::{self, Ceiling, SleepBound, Total};
use crate::commands::rate::{Given, GivenLeast};

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

pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Given>, D::Error> {
    Value::parse(from, str::parse::<Given>)
}

pub(super) fn least<'de, D: Deserializer<'de>>(from: D) -> Result<Option<GivenLeast>, D::Error> {
    Value::parse(from, str::parse::<GivenLeast>)
}

pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    Value::parse(from, str::parse::<Bytes>)
}

pub(super) fn ceiling<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Ceiling>, D::Error> {
    Value::parse(from, str::parse::<Ceiling>)
}

pub(super) fn total<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Total>, D::Error> {
    Value::parse(from, str::parse::<Total>)
}

pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    Value::parse(from, str::parse::<Nanos>)
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
