//! The subcommands, one file each.

mod class;
mod doctor;
mod limits;
mod run;
mod status;

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
    Doctor(doctor::Doctor),
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
            Command::Doctor(doctor) => doctor.run(),
        }
    }
}
