//! What can be set, with the paper's values as defaults.

use std::fmt;

use discnice_units::Nanos;

/// Parameters of progress-based regulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    //= ms-manners/6.1-defaults
    /// Probability of judging good progress poor (section 6.1); default 0.05.
    pub alpha: f64,
    //= ms-manners/6.1-defaults
    /// Probability of judging marginally poor progress good; above `alpha`; default 0.2.
    pub beta: f64,
    /// As `alpha`, for the probes between a poor judgment and the next good one, and while signals
    /// show other work. Contention is likely then, so less is needed to confirm it; default 0.125,
    /// three samples. The paper's is `alpha`.
    pub probe_alpha: f64,
    //= ms-manners/6.2-n
    /// Hours between two suspensions of a job that nothing disturbs, on average at least; default 1.
    /// The sequential test ([`crate::model::sequential`]) keeps that, and then decides in the place of the sign
    /// test, which still confirms what other signs of contention say, and judges progress good. 0 is the
    /// paper's: the sign test alone.
    pub false_stop_hours: f64,
    //= ms-manners/6.2-n
    /// Length of the exponential average in testpoints, the paper's n; default 10,000.
    pub average_over: f64,
    /// The ridge offset, the paper's nu; default 1e-11.
    pub ridge: f64,
    //= ms-manners/4.3-bootstrap
    /// Testpoints that run without judgment to start the calibration; default 40.
    pub bootstrap: u32,
    /// How the calibrator weighs its measurements.
    pub calibration: Calibration,
    /// A testpoint lags when it takes more than target times this. 1 is the paper's test. The
    /// default, 1.1, forgives a tenth, which spares an idle machine most wrong judgments and
    /// gives nothing away where contention costs tens of percent.
    pub slack: f64,
    /// Longest probation of a job with targets measured on a machine not known to be quiet; default
    /// 1 hour. The paper's experiment had 24.
    pub probation: Nanos,
    /// Largest share of time that a job on probation runs; default 0.2.
    pub probation_duty_frac: f64,
    /// First suspension; default 1 s.
    pub suspension: Nanos,
    //= ms-manners/4.1-cap
    /// Longest suspension; default 256 s.
    pub suspension_cap: Nanos,
    /// The shortest time after which a suspended job may probe because the machine went quiet;
    /// doubles with each such probe that found contention. `None` keeps the paper's plain back-off.
    pub early_probe: Option<Nanos>,
    //= ms-manners/7.1-hung
    /// A longer gap between testpoints is an external delay, not slow progress; default 10 s.
    pub hung: Nanos,
}

/// How measurements become targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calibration {
    /// Equations 4 and 5: the exponential average of each single metric's rate; equations 11 to 14
    /// for several.
    Paper,
    /// Equations 11 to 14 for any number of metrics. While on probation, only the windows of
    /// testpoints that ran about as fast as the fastest quarter count; see [`crate::model::windows`].
    /// Later, testpoints that led to a poor judgment on a machine not known to be quiet count an
    /// eighth: the average still follows a resource that became slower for good, but the probes
    /// of a busy day do not pull it.
    #[default]
    Trimmed,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            beta: 0.2,
            probe_alpha: 0.125,
            false_stop_hours: 1.0,
            average_over: 10_000.0,
            ridge: 1e-11,
            bootstrap: 40,
            calibration: Calibration::Trimmed,
            slack: 1.1,
            probation: Nanos(3600 * Nanos::SECOND.0),
            probation_duty_frac: 0.2,
            suspension: Nanos::SECOND,
            suspension_cap: Nanos(256 * Nanos::SECOND.0),
            early_probe: Some(Nanos::from_millis(250)),
            hung: Nanos(10 * Nanos::SECOND.0),
        }
    }
}

impl Config {
    /// The paper's experiment: its calibration, its test without slack, its plain back-off.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            calibration: Calibration::Paper,
            slack: 1.0,
            probe_alpha: 0.05,
            false_stop_hours: 0.0,
            early_probe: None,
            probation: Nanos(24 * 3600 * Nanos::SECOND.0),
            ..Self::default()
        }
    }

    //= ms-manners/6.1-stability
    /// Checks that the parameters make a stable system.
    ///
    /// # Errors
    /// Says which parameter is out of its range.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let rules = [
            (self.alpha > 0.0 && self.alpha < self.beta, "alpha", "be above 0 and below beta"),
            (
                self.probe_alpha >= self.alpha && self.probe_alpha < self.beta,
                "probe_alpha",
                "be at least alpha and below beta",
            ),
            (
                self.false_stop_hours >= 0.0 && self.false_stop_hours <= 1e6,
                "false-stop-hours",
                "be in 0 to 1000000",
            ),
            (self.beta < 0.5, "beta", "be below 0.5"),
            (self.average_over >= 2.0, "average-over", "be at least 2 testpoints"),
            (self.ridge >= 0.0 && self.ridge < 0.1, "ridge", "be in 0 to 0.1"),
            (self.slack >= 1.0 && self.slack < 10.0, "slack", "be in 1 to 10"),
            (self.bootstrap > 0, "bootstrap", "be at least 1 testpoint"),
            (
                self.probation_duty_frac > 0.0 && self.probation_duty_frac <= 1.0,
                "probation_duty_frac",
                "be above 0 and at most 1",
            ),
            (self.hung >= Nanos::SECOND, "hung", "be at least 1 s"),
            (self.suspension.0 > 0, "suspension", "be above 0"),
            (self.suspension <= self.suspension_cap, "suspension", "not exceed its cap"),
        ];
        let broken = rules.into_iter().find(|(holds, ..)| !holds);
        broken.map_or(Ok(()), |(_, parameter, rule)| Err(InvalidConfig { parameter, rule }))
    }
}

/// Names the parameter that is out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidConfig {
    /// Its name.
    pub parameter: &'static str,
    /// What it must do.
    rule: &'static str,
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must {}", self.parameter, self.rule)
    }
}

impl std::error::Error for InvalidConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    //= ms-manners/6.1-defaults
    //= ms-manners/6.2-n
    #[test]
    fn the_papers_values() {
        for config in [Config::default(), Config::paper()] {
            assert_eq!((config.alpha, config.beta), (0.05, 0.2));
            assert_eq!((config.average_over, config.ridge), (10_000.0, 1e-11));
        }
        assert_eq!(Config::paper().probation, Nanos(24 * 3600 * Nanos::SECOND.0));
    }

    //= ms-manners/6.1-stability
    #[test]
    fn defaults_are_stable_and_nan_is_refused() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::paper().check(), Ok(()));
        let unstable = Config { alpha: 0.3, ..Config::default() };
        assert!(unstable.check().unwrap_err().to_string().contains("alpha"));
        assert!(Config { slack: f64::NAN, ..Config::default() }.check().is_err());
    }
}
