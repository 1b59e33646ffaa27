//! `discnice`: background work that its neighbours do not notice.
//!
//! One file a subcommand, in `commands/`; each has its arguments (one `clap` struct, from which
//! help, man page and completions come) and a `run` that returns the exit status. `main` owns
//! exit statuses: the command's own, or 125 for an error of ours, as nice(1) and env(1) do.

mod commands;

use std::process::ExitCode;

use clap::Parser;

/// Exit status for an error of our own, as coreutils' nice(1), env(1) and timeout(1).
const EXIT_OURS: u8 = 125;

fn main() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { EXIT_OURS } else { 0 };
            // A closed standard error leaves nobody to tell.
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    match cli.run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("discnice: {error:#}");
            ExitCode::from(EXIT_OURS)
        }
    }
}
