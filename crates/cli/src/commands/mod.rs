//! The subcommands, one file each.

mod admit;
mod attach;
mod attach_limits;
mod by_mechanism;
mod cached;
mod calibrate;
pub(crate) mod class;
mod detach;
mod doctor;
mod estimator;
mod file_status;
pub(crate) mod limits;
pub(crate) mod member_report;
mod metrics;
mod order;
mod policyd;
mod polite;
mod refresh;
mod run;
pub(crate) mod status;
mod status_polite;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Let background work run on a machine in use without its users noticing.
#[derive(Debug, Parser)]
#[command(name = "discnice", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Class(class::Args),
    Status(status::Status),
    Top(top::Top),
    Metrics(metrics::Metrics),
    Attach(attach::Attach),
    Detach(detach::Detach),
    Policyd(policyd::Policyd),
    Doctor(doctor::Doctor),
    Admit(admit::Admit),
    Cached(cached::Cached),
    Calibrate(calibrate::Calibrate),
    Order(order::Order),
    Refresh(refresh::Refresh),
}

impl Cli {
    /// Runs the chosen subcommand; returns the exit status.
    ///
    /// # Errors
    /// One line for people: what is wrong and what to do.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Class(class) => class.run(),
            Command::Status(status) => status.run(),
            Command::Top(command) => command.run(),
            Command::Metrics(command) => command.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Attach(command) => command.run(),
            Command::Detach(command) => command.run(),
            Command::Policyd(command) => command.run(),
            Command::Admit(command) => command.run(),
            Command::Cached(command) => command.run(),
            Command::Calibrate(command) => command.run(),
            Command::Order(command) => command.run(),
            Command::Refresh(command) => command.run(),
        }
    }
}
