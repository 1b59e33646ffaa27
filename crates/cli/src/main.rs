//! The program `discnice`. Exit statuses are decided here and nowhere else: the command's own, or
//! 125 for an error of ours, as nice(1) and env(1) do.

#![no_main]
#![allow(unsafe_code, reason = "`main` is C's, so that nothing can fail before it")]

use std::ffi::{c_char, c_int};
use std::process::ExitCode;

use clap::Parser;
use discnice_cli::commands::Cli;
use discnice_cli::memory::{self, Allocator};
use discnice_cli::output::Unsaid;
use discnice_cli::{inheritance, stack, tell};

/// Exit status for an error of our own, as coreutils' nice(1), env(1) and timeout(1).
const EXIT_OURS: u8 = 125;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// What the C library calls. It has given the arguments to the standard library already.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, arguments: *const *const c_char) -> c_int {
    memory::note_arguments(arguments);
    inheritance::change();
    let status = stack::with_enough(run);
    std::process::exit(number(status))
}

/// An exit status as a number, which the standard library does not tell.
fn number(status: ExitCode) -> c_int {
    let found = (0..=u8::MAX).find(|number| ExitCode::from(*number) == status);
    found.unwrap_or(EXIT_OURS).into()
}

/// Not in one frame with [`main`], which may have little room.
#[inline(never)]
fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            tell!("discnice: {}", one_line(&error));
            return ExitCode::from(EXIT_OURS);
        }
        Err(help) => {
            return match help.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(EXIT_OURS),
            };
        }
    };
    match cli.run() {
        Ok(status) => status,
        Err(error) if error.downcast_ref().is_some_and(Unsaid::is_unread) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("discnice: {error:#}");
            ExitCode::from(EXIT_OURS)
        }
    }
}

/// A usage error as one line: what is wrong and what to do.
fn one_line(error: &clap::Error) -> String {
    use clap::error::ErrorKind;

    let text = error.render().to_string();
    // What follows an empty line is usage, tips and a pointer to --help.
    let message = text.split("\n\n").next().unwrap_or(&text);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let line = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match error.kind() {
        ErrorKind::UnknownArgument => {
            format!("{line}; the command to run stands behind `--` (see --help)")
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "no subcommand given; see `discnice --help`".into()
        }
        _ => line,
    }
}
