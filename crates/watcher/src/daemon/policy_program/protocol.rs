//! What is said between policyd and the program that is a class's policy: docs/policies.md.

use std::collections::BTreeMap;
use std::time::Duration;

use discnice_ledger::Class;
use discnice_ledger::policy::Resource;
use discnice_sys::process;
use discnice_units::{Moment, Nanos, Rate};
use serde::{Deserialize, Serialize};

/// The version of what is said.
const VERSION: u32 = 1;
/// How long an answer holds that does not say so, and bounds of what it may say.
const USUAL: f64 = 2.0;
const SHORTEST: f64 = 0.1;
const LONGEST: f64 = 60.0;

/// A question, one line.
#[derive(Debug, Serialize)]
struct Question<'a> {
    version: u32,
    class: &'a str,
    /// Time since the machine was started, as all times here.
    seconds: f64,
    members: usize,
    weight: u32,
    /// Units a second by resource; what is missing has no limit.
    limits: BTreeMap<&'static str, u64>,
    /// Units since the class was made.
    moved: BTreeMap<&'static str, u64>,
    /// How long calls were held since then, of all threads together.
    waited_seconds: f64,
}

/// An answer, one line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// Units a second by resource; what is missing has its limit alone.
    #[serde(default)]
    rates: BTreeMap<String, u64>,
    /// How long they hold.
    seconds: Option<f64>,
}

/// The line that asks about a class.
pub(super) fn question(class: &Class, name: &str, now: Moment) -> String {
    let limits = class.limits();
    let limited = Resource::ALL.into_iter().filter(|one| !limits.rate(*one).is_unlimited());
    let all = Resource::ALL.into_iter();
    let question = Question {
        version: VERSION,
        class: name,
        seconds: now.since(Moment::FIRST).as_secs_f64(),
        members: class.living(process::exists).count(),
        weight: limits.weight(),
        limits: limited.map(|one| (one.name(), limits.rate(one).get())).collect(),
        moved: all.map(|one| (one.name(), class.meter(one).total())).collect(),
        waited_seconds: class.waits().1.as_secs_f64(),
    };
    let mut line = serde_json::to_string(&question).unwrap_or_default();
    line.push('\n');
    line
}

/// Rates, and how long they hold; `None` for a line that is no answer.
pub(super) fn answer(line: &[u8]) -> Option<([Rate; Resource::COUNT], Nanos)> {
    let answer: Answer = serde_json::from_slice(line).ok()?;
    let mut rates = [Rate::UNLIMITED; Resource::COUNT];
    for (name, rate) in &answer.rates {
        let resource = Resource::ALL.into_iter().find(|one| one.name() == name)?;
        // Nothing at all is what `discnice pause` is for: a class that owes for ever could not be let go on.
        *rates.get_mut(resource as usize)? = Rate::per_second((*rate).max(1));
    }
    let seconds = answer.seconds.unwrap_or(USUAL);
    if !(SHORTEST..=LONGEST).contains(&seconds) {
        return None;
    }
    let nanos = u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).ok()?;
    Some((rates, Nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= discnice/5.3-function
    #[test]
    fn answers_name_rates_and_how_long_they_hold() {
        let (rates, time) = answer(br#"{"rates": {"total": 5000, "net_up": 0}, "seconds": 0.5}"#)
            .expect("an answer");
        assert_eq!(rates[Resource::Total as usize], Rate::per_second(5000));
        assert_eq!(rates[Resource::NetUp as usize], Rate::per_second(1), "never nothing");
        assert_eq!(rates[Resource::Read as usize], Rate::UNLIMITED);
        assert_eq!(time, Nanos::from_millis(500));
        let (rates, time) = answer(b"{}").expect("an answer");
        assert_eq!((rates, time), ([Rate::UNLIMITED; 8], Nanos(2 * Nanos::SECOND.0)));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for line in [
            "",
            "5000",
            r#"{"rates": {"disc": 5}}"#,
            r#"{"rates": {"total": -5}}"#,
            r#"{"rates": {"total": 1e400}}"#,
            r#"{"rate": {}}"#,
            r#"{"seconds": 0}"#,
            r#"{"seconds": 3600}"#,
            r#"{"seconds": "2"}"#,
        ] {
            assert_eq!(answer(line.as_bytes()), None, "{line}");
        }
    }
}
