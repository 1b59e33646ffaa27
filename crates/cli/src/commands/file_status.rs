//! How the tools that take FILEs report: one line for each that failed, the rest handled, exit
//! status 1 at the end, as coreutils do.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::output::tell;
use discnice_graybox::input::{InputError, reason, shown};

/// One line about one input.
pub fn complain(path: &Path, error: &InputError) {
    tell!("discnice: {}: {error}", shown(path));
}

/// The exit status for a run in which all inputs were well (`true`), some failed, or the input or
/// output as a whole failed. A reader that has seen enough (`| head`) is no failure.
///
/// # Errors
/// None at present; typed as the subcommands' `run` is.
pub fn status(done: io::Result<bool>) -> anyhow::Result<ExitCode> {
    Ok(match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell!("discnice: {}", reason(&error));
            ExitCode::FAILURE
        }
    })
}
