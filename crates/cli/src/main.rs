//! The program `discnice`. Exit statuses are decided here and nowhere else: the command's own, or
//! 125 for an error of ours, as nice(1) and env(1) do.

use std::process::ExitCode;

use clap::Parser;
use discnice_cli::commands::Cli;

/// Exit status for an error of our own, as coreutils' nice(1), env(1) and timeout(1).
const EXIT_OURS: u8 = 125;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            eprintln!("discnice: {}", one_line(&error));
            return ExitCode::from(EXIT_OURS);
        }
        Err(help) => {
            // A closed standard output leaves nobody to help.
            let _ = help.print();
            return ExitCode::SUCCESS;
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

/// A usage error as one line: what is wrong and what to do.
fn one_line(error: &clap::Error) -> String {
    use clap::error::ErrorKind;

    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).replace(['\n', '\r'], " ");
    match error.kind() {
        ErrorKind::UnknownArgument => {
            line.push_str("; the command to run stands behind `--` (see --help)");
        }
        // The names that are missing, or the commands that there are, stand below.
        ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand => {
            if let Some(second) = lines.next() {
                line.push(' ');
                line.push_str(second);
            }
        }
        _ => {}
    }
    line
}
