//! Quantities as people type them: no text may crash the parser, and what is printed means about
//! the same when it is typed again, without the blank.
#![no_main]

use std::str::FromStr;

use discnice_units::{Bytes, Rate};
use libfuzzer_sys::fuzz_target;

/// What people are shown from here on has a unit that they cannot type.
const TYPED: u64 = 1 << 40;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        check(rate.get(), &rate.to_string(), Rate::get, text);
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        check(bytes.get(), &bytes.to_string(), Bytes::get, text);
    }
});

fn check<T: FromStr>(value: u64, shown: &str, number: impl Fn(T) -> u64, text: &str) {
    if value >= TYPED && shown != "unlimited" {
        return;
    }
    let Ok(again) = shown.replace(' ', "").parse().map(number) else {
        panic!("{text:?}: {shown} cannot be typed");
    };
    // One decimal is shown.
    assert!(value.abs_diff(again) <= value / 16, "{text:?}: {shown} became {again}");
}
