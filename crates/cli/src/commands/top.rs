//! `discnice top`.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::output::is_for_people;
use crate::top;

/// Watch classes and processes, and change limits with a key
#[derive(Debug, Args)]
pub struct Top {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
          allow_hyphen_values = true)]
    interval: Duration,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let number = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    number.map(Duration::from_secs_f64).ok_or("give seconds from 0.1 to 3600")
}

impl Top {
    /// Shows them until the user has seen enough.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
        if !stdin().is_terminal() || !is_for_people() || dumb {
            bail!("top needs a terminal; `discnice status` prints the same once");
        }
        top::run(self.interval)
    }
}
