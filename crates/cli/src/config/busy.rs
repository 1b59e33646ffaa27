//! `[busy]` of a configuration: from what traffic of theirs on others count as busy, for all classes that give way.

use discnice_ledger::policy::throttle::Thresholds;
use discnice_units::Rate;
use serde::Deserialize;

//= rate-windows/3.2-tuning
/// The thresholds of the throttled state, as far as they are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [busy]")]
pub struct Busy {
    #[serde(deserialize_with = "rate")]
    high: Option<Rate>,
    #[serde(deserialize_with = "rate")]
    low: Option<Rate>,
    #[serde(deserialize_with = "rate")]
    starved: Option<Rate>,
}

fn rate<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let text = String::deserialize(from)?;
    let rate: Rate = text.parse().map_err(serde::de::Error::custom)?;
    if rate.is_unlimited() {
        return Err(serde::de::Error::custom(
            "give a rate, such as 2M; to give way to no others, `when = \"always\"`",
        ));
    }
    Ok(Some(rate))
}

impl Busy {
    /// These, and what they leave out as `other` has it.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self {
            high: self.high.or(other.high),
            low: self.low.or(other.low),
            starved: self.starved.or(other.starved),
        }
    }

    /// The thresholds where nothing is given but these: a low one follows a high one.
    #[must_use]
    pub fn applied(self, usual: &Thresholds) -> Thresholds {
        let high = self.high.unwrap_or(usual.high);
        let half = Rate::per_second((high.get() / 2).max(1));
        let low = self.low.unwrap_or(if self.high.is_some() { half } else { usual.low });
        Thresholds { high, low: low.min(high), starved: self.starved.unwrap_or(usual.starved) }
    }

    /// Refuses thresholds that contradict each other.
    ///
    /// # Errors
    /// The low one is above the high one.
    pub fn check(&self) -> Result<(), String> {
        match (self.low, self.high) {
            (Some(low), Some(high)) if low > high => {
                Err(format!("low {low} is above high {high}; lower it or raise the other"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Busy, String> {
        let busy: Busy = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        busy.check().map(|()| busy)
    }

    //= rate-windows/3.2-tuning
    #[test]
    fn what_is_given_replaces_what_is_usual() {
        let usual = Thresholds::of(Rate::per_second(100_000_000));
        let rate = Rate::per_second;
        let applied = |text: &str| parse(text).unwrap().applied(&usual);
        assert_eq!(applied(""), usual);
        let given = applied("high = \"4M\"\nstarved = \"64K\"");
        assert_eq!(
            given,
            Thresholds { high: rate(4 << 20), low: rate(2 << 20), starved: rate(64 << 10) }
        );
        let lower = applied("low = \"1k\"");
        assert_eq!((lower.high, lower.low), (usual.high, rate(1024)));
        assert_eq!(applied("low = \"1G\"").low, usual.high, "no low one above the high one");
        let site = parse("high = \"8M\"\nlow = \"1M\"").unwrap();
        let both = parse("high = \"2M\"").unwrap().over(site).applied(&usual);
        assert_eq!((both.high, both.low), (rate(2 << 20), rate(1 << 20)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, why) in [
            ("high = \"1M\"\nlow = \"2M\"", "above high"),
            ("high = \"unlimited\"", "give a rate"),
            ("high = \"5\"", "5 what?"),
            ("hihg = \"5M\"", "unknown field"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
