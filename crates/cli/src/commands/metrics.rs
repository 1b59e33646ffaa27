//! `discnice metrics`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use discnice_metrics::{Audience, ClassMetrics, Endpoint, Listener, ProcessCounts, serve, text};

use super::member_report;
use crate::classes::{self, MappedClass};
use crate::output::{self, tell};
use crate::running::Running;

const EXAMPLES: &str = "\
Examples:
  discnice metrics                     once, to standard output
  discnice metrics --listen 9123       to a Prometheus server that runs as this user";

/// Print the metrics of all classes in the OpenMetrics format, or serve them to scrapers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Metrics {
    /// Serve them here until stopped: a port of this machine, an address with a port, or the
    /// path of a socket
    #[arg(long, value_name = "ADDR", allow_hyphen_values = true)]
    listen: Option<Endpoint>,
    /// Answer other users, and other machines if the address is not local; without it, only processes of this user are
    /// answered
    #[arg(long, requires = "listen")]
    public: bool,
}

impl Metrics {
    /// Prints or serves.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.listen {
            None => output::metrics(&current()?)?,
            Some(endpoint) => {
                let listener = Listener::bind(&endpoint)?;
                // Classes that cannot be listed now may be listed the next time.
                let metrics = || {
                    current().unwrap_or_else(|error| {
                        tell!("discnice: {error:#}");
                        text(Vec::new())
                    })
                };
                let audience = if self.public { Audience::Public } else { Audience::Own };
                serve(&listener, audience, metrics).context("cannot serve metrics any longer")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The metrics of all classes of this user now.
fn current() -> anyhow::Result<String> {
    let found = classes::all()?;
    let metrics = found.iter().map(of).collect();
    classes::let_go(found);
    Ok(text(metrics))
}

fn of(found: &MappedClass) -> ClassMetrics {
    let mut held = ProcessCounts::default();
    for running in Running::all(found) {
        if member_report::escape(&running).is_some() {
            held.escaped += 1;
            held.escaped_bytes += running.seen().unwrap_or(0);
        } else {
            held.limited += 1;
        }
    }
    ClassMetrics::of(&found.name(), found.class, held)
}
