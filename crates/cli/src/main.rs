//! The program `discnice`. Exit statuses are decided here and nowhere else: the command's own, or
//! 125 for an error of ours, as nice(1) and env(1) do.

#![no_main]
#![allow(unsafe_code, reason = "`main` is C's, so that nothing can fail before it")]

use std::ffi::{c_char, c_int};
use std::process::ExitCode;

use discnice_cli::arguments::{self, Asked};
use discnice_cli::memory::{self, Allocator};
use discnice_cli::output::{self, Unsaid};
use discnice_cli::{inheritance, stack, tell};

/// Exit status for an error of our own, as coreutils' nice(1), env(1) and timeout(1).
const EXIT_OURS: u8 = 125;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// What the C library calls.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: the C library vouches for them.
    unsafe { memory::note_arguments(arguments) };
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
    let words = memory::words();
    let cli = match arguments::parse(&words) {
        Asked::Do(cli) => cli,
        Asked::Show(text) => return status_of(output::styled(&text)),
        Asked::Refuse(line) => {
            tell!("discnice: {line}");
            return ExitCode::from(EXIT_OURS);
        }
    };
    match cli.run() {
        Ok(status) => status,
        Err(error) => match error.downcast() {
            Ok(unsaid) => status_of(Err(unsaid)),
            Err(error) => {
                tell!("discnice: {error:#}");
                ExitCode::from(EXIT_OURS)
            }
        },
    }
}

/// The exit status of a command that has said all, or could not.
fn status_of(said: Result<(), Unsaid>) -> ExitCode {
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(unsaid) if unsaid.is_unread() => ExitCode::SUCCESS,
        Err(unsaid) => {
            tell!("discnice: {unsaid}");
            ExitCode::from(EXIT_OURS)
        }
    }
}
