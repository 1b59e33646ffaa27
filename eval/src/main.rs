//! `discnice-eval`: every table and figure of the papers, measured on the reader's own machine.
//!
//! - `disk/` is the emulated disk, on which seeks cost what they cost the papers' authors;
//! - `frame/` is what experiments share: the paper's values, requirements, records, the runner;
//! - `lab/` is where they run: programs as an unprivileged user, counters, control groups;
//! - `bench` runs the measurements of the product itself, in `eval/benches`;
//! - `experiments/` are the tables and figures; `report/` compares, draws and prints them.

mod bench;
mod built;
mod commands;
mod disk;
mod experiments;
mod frame;
mod lab;
mod message;
mod proc;
mod random;
mod removal;
mod report;
mod site;
mod stop;
mod tool;
mod users;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use message::PREFIX;

/// Exit status for an error of our own, as `discnice` has it.
const EXIT_OURS: u8 = 125;

fn main() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { EXIT_OURS } else { 0 };
            // With standard error closed, no error can be reported.
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{PREFIX}{error:#}");
            ExitCode::from(EXIT_OURS)
        }
    }
}
