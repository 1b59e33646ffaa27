//! How the tools that take FILEs report: one line for each that failed, the rest handled, exit
//! status 1 at the end, as coreutils do.

use std::path::Path;
use std::process::ExitCode;

use crate::output::tell;
use discnice_graybox::input::{InputError, shown};

/// One line about one input.
pub fn complain(path: &Path, error: &InputError) {
    tell!("discnice: {}: {error}", shown(path));
}

/// The exit status for a run in which all inputs were well (`true`), or some failed.
pub fn status(all_well: bool) -> ExitCode {
    if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
