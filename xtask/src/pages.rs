//! Man pages and shell completions, from the one definition of each flag.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use discnice_cli::commands::Cli;

/// Writes all of them into `folder`.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // `discnice help` has no page of its own.
    let command = Cli::command().disable_help_subcommand(true);
    crate::completions::write(folder, &command)?;
    crate::manual::write(folder, &command)?;
    println!("pages: written to {}", folder.display());
    Ok(())
}
