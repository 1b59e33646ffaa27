//! What happens when a limit does not hold: a command runs all the same, as a backup that is too fast beats no
//! backup, or is not started, if the user is strict.

use std::fmt;

use anyhow::bail;

use crate::config::{self, ConfigFiles};
use crate::holding::Unheld;
use crate::output::tell;

/// Exit status of a command that is not started, as every error of ours.
pub const OURS: u8 = 125;
/// Added to each warning.
pub const HINT: &str = "; --strict refuses to start it then";
/// In the environment: `1` or `0`.
const VARIABLE: &str = "DISCNICE_STRICT";

/// Says if a command is refused when a limit cannot hold for it.
#[derive(Debug, Clone, Copy)]
pub struct Strictness(pub bool);

impl Strictness {
    /// By the option or where the site insists, else by the environment, else by the configuration.
    ///
    /// # Errors
    /// One of them says neither yes nor no.
    pub fn of(option: bool) -> anyhow::Result<Self> {
        if option || config::must_be_strict() {
            return Ok(Self(true));
        }
        match std::env::var_os(VARIABLE).as_deref().and_then(|value| value.to_str()) {
            Some("1") => Ok(Self(true)),
            Some("0") => Ok(Self(false)),
            Some("") | None if std::env::var_os(VARIABLE).is_none_or(|value| value.is_empty()) => {
                Ok(Self(ConfigFiles::load()?.strict()))
            }
            _ => bail!("{VARIABLE} is neither 1 nor 0; set it to 1 to be strict, or unset it"),
        }
    }

    /// Says that a limit does not hold, or refuses the command.
    ///
    /// # Errors
    /// The command is refused.
    pub fn mind(self, unheld: Unheld) -> Result<(), NotStarted> {
        if self.0 {
            return Err(NotStarted(unheld));
        }
        tell!("discnice: {unheld}{HINT}");
        Ok(())
    }

    /// What a limit needs; `None` if it is not to be had and need not be.
    ///
    /// # Errors
    /// The command is refused.
    pub fn have<T>(self, needed: Result<T, Unheld>) -> Result<Option<T>, NotStarted> {
        match needed {
            Ok(had) => Ok(Some(had)),
            Err(unheld) => self.mind(unheld).map(|()| None),
        }
    }
}

/// Why a command is not started.
#[derive(Debug)]
pub struct NotStarted(Unheld);

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not started (--strict): {}; {}", self.0, self.0.remedy())
    }
}

impl std::error::Error for NotStarted {}
