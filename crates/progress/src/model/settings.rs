//! What users may set of the regulation, by name: one list for the C and Python interfaces, the
//! configuration and the command line.

use std::fmt;
use std::str::FromStr;

use discnice_units::Nanos;

use crate::model::config::{Config, InvalidConfig};

/// A parameter that users may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// [`Config::alpha`].
    Alpha,
    /// [`Config::beta`].
    Beta,
    /// [`Config::false_stop_hours`].
    FalseStopHours,
    /// [`Config::average_over`], in testpoints.
    AverageOver,
    /// [`Config::hung`], in seconds.
    Hung,
    //= ms-manners/9.1-no-probation
    /// [`Config::probation`], in seconds.
    Probation,
}

impl Parameter {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("alpha", Self::Alpha),
        ("beta", Self::Beta),
        ("false-stop-hours", Self::FalseStopHours),
        ("average-over", Self::AverageOver),
        ("hung", Self::Hung),
        ("probation", Self::Probation),
    ];

    /// The parameter of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, BadSetting> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, parameter)| *parameter).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            BadSetting::text(format!("no parameter {name:?}; there are {names}"))
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

/// A parameter and its value; written `alpha=0.05`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// What is set.
    pub parameter: Parameter,
    /// To what.
    pub value: f64,
}

impl FromStr for Setting {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        let bad =
            || BadSetting::text(format!("{text:?} is no setting; write NAME=NUMBER: alpha=0.05"));
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let parameter = Parameter::named(name.trim())?;
        Ok(Self { parameter, value: value.trim().parse().map_err(|_| bad())? })
    }
}

impl Setting {
    /// Parses settings with commas or spaces between them.
    ///
    /// # Errors
    /// As a single one.
    pub fn list(text: &str) -> Result<Vec<Self>, BadSetting> {
        let parts = text.split([',', ' ', '\n']).filter(|part| !part.is_empty());
        parts.map(str::parse).collect()
    }

    //= ms-manners/6.1-parameters
    fn set(self, config: &mut Config) -> Result<(), BadSetting> {
        let value = self.value;
        if !value.is_finite() || value < 0.0 {
            let name = self.parameter.name();
            let why = format!("{name} must be a number of at least 0, not {value}");
            return Err(BadSetting { parameter: Some(self.parameter), why });
        }
        match self.parameter {
            Parameter::Alpha => config.alpha = value,
            Parameter::Beta => config.beta = value,
            Parameter::FalseStopHours => config.false_stop_hours = value,
            //= ms-manners/6.2-n
            Parameter::AverageOver => config.average_over = value,
            Parameter::Hung => config.hung = seconds(value),
            Parameter::Probation => config.probation = seconds(value),
        }
        Ok(())
    }
}

/// Sets all of `settings`, or nothing.
///
/// # Errors
/// A value out of its range, or values that together make no stable system.
pub fn apply(config: &mut Config, settings: &[Setting]) -> Result<(), BadSetting> {
    let mut changed = config.clone();
    for setting in settings {
        setting.set(&mut changed)?;
    }
    // A parameter between the two that cannot be set follows where they moved past it.
    if changed.probe_alpha < changed.alpha || changed.probe_alpha >= changed.beta {
        changed.probe_alpha = changed.alpha;
    }
    changed.check()?;
    *config = changed;
    Ok(())
}

fn seconds(value: f64) -> Nanos {
    Nanos((value * Nanos::SECOND.0 as f64) as u64)
}

/// Says in one line which setting cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSetting {
    /// The parameter that has a value which it cannot have.
    pub parameter: Option<Parameter>,
    why: String,
}

impl BadSetting {
    /// What sets no parameter.
    const fn text(why: String) -> Self {
        Self { parameter: None, why }
    }
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for BadSetting {}

impl From<InvalidConfig> for BadSetting {
    fn from(invalid: InvalidConfig) -> Self {
        Self { parameter: Parameter::named(invalid.parameter).ok(), why: invalid.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        let settings = Setting::list(text).map_err(|error| error.to_string())?;
        apply(&mut config, &settings).map_err(|error| error.to_string())?;
        Ok(config)
    }

    //= ms-manners/9.1-no-probation
    //= ms-manners/6.1-parameters
    //= ms-manners/6.2-n
    #[test]
    fn each_parameter_is_set_and_checked() {
        let all = "alpha=0.01, beta=0.1 average-over=500,hung=60.5,probation=0,false-stop-hours=8";
        let config = set(all).unwrap();
        assert_eq!(config.false_stop_hours, 8.0);
        assert_eq!((config.alpha, config.beta, config.average_over), (0.01, 0.1, 500.0));
        assert_eq!((config.hung, config.probation), (Nanos::from_millis(60_500), Nanos(0)));
        assert_eq!(config.probe_alpha, 0.01, "0.125 would not be below beta");
        assert_eq!(set("").unwrap(), Config::default());
        assert_eq!(set("alpha=0.3,beta=0.4").unwrap().probe_alpha, 0.3, "both count, in any order");
        for (bad, why) in [
            ("alpha=0.3", "below beta"),
            ("alpha=-1", "at least 0"),
            ("beta=nan", "at least 0"),
            ("hung=inf", "at least 0"),
            ("hung=0", "hung must be"),
            ("average-over=1", "average-over must be at least 2"),
            ("gamma=1", "there are alpha, beta, false-stop-hours, average-over, hung, probation"),
            ("alpha", "NAME=NUMBER"),
            ("alpha=x", "NAME=NUMBER"),
        ] {
            let error = set(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_parameter() {
        for (text, parameter) in [
            ("hung=60,alpha=0.3", Parameter::Alpha),
            ("alpha=-1", Parameter::Alpha),
            ("beta=0.5", Parameter::Beta),
            ("hung=0,alpha=0.1", Parameter::Hung),
            ("average-over=1", Parameter::AverageOver),
            ("false-stop-hours=1e7", Parameter::FalseStopHours),
            ("probation=inf", Parameter::Probation),
        ] {
            let error = apply(&mut Config::default(), &Setting::list(text).unwrap()).unwrap_err();
            assert_eq!(error.parameter, Some(parameter), "{error}");
            assert!(error.to_string().starts_with(parameter.name()), "{error}");
        }
        assert_eq!(Setting::list("alpha").unwrap_err().parameter, None);
    }

    #[test]
    fn a_bad_setting_changes_nothing() {
        let mut config = Config::default();
        let settings = Setting::list("hung=99,alpha=0.4").unwrap();
        assert!(apply(&mut config, &settings).is_err());
        assert_eq!(config, Config::default());
    }
}
