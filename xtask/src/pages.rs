//! Man pages and shell completions, from the one definition of each flag.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use discnice_cli::commands::Cli;

/// Writes all of them into `folder`.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // `discnice help` has no page of its own.
    let mut command = Cli::command().disable_help_subcommand(true);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "discnice", folder)?;
    }
    crate::manual::write(folder, &command)?;
    println!("pages: written to {}", folder.display());
    Ok(())
}
