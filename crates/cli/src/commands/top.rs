//! `discnice top`.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::output::is_for_people;
use crate::{top, values};

const EXAMPLES: &str = "\
Examples:
  discnice top                     live, until q is pressed; ? shows all keys
  discnice top --interval 5s       updated less often";

/// Watch classes and processes live, and change their limits with keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Top {
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval,
          allow_hyphen_values = true)]
    interval: Duration,
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

fn interval(text: &str) -> Result<Duration, &'static str> {
    let given = values::duration(text).ok();
    let fitting = given.filter(|interval| (SHORTEST..=LONGEST).contains(interval));
    fitting.ok_or("give a time from 0.1s to 1h, such as 2s")
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
