//! `discnice-eval`: every table and figure of the papers, measured on the reader's own machine.
//!
//! `disk/` is the emulated disk, on which seeks cost what they cost the papers' authors.

mod disk;
mod proc;
mod stop;
mod tool;
mod users;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status for an error of our own, as `discnice` has it.
const EXIT_OURS: u8 = 125;
/// Begin of every message.
pub const PREFIX: &str = "discnice-eval: ";

/// Measure what the papers measured, on this machine
#[derive(Debug, Parser)]
#[command(name = "discnice-eval", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(subcommand)]
    Disk(disk::DiskCommand),
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Disk(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { EXIT_OURS } else { 0 };
            // A closed standard error leaves nobody to tell.
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{PREFIX}{error:#}");
            ExitCode::from(EXIT_OURS)
        }
    }
}
