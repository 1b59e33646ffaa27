//! `cargo pages TASK`: pages that say what each command's flags mean, from the one definition of each flag.

mod commands;
mod completions;
mod manual;
mod sections;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{CommandFactory, Parser};
use discnice_cli::commands::Cli;

#[derive(Debug, Parser)]
enum Task {
    /// Write the book's pages of what each subcommand's --help says
    Book,
    /// Write man pages and shell completions
    Manual {
        /// Where to
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Book => commands::write(),
        Task::Manual { folder } => write_manual(&folder),
    }
}

/// Writes man pages and shell completions into `folder`.
fn write_manual(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // `discnice help` has no page of its own.
    let command = Cli::command().disable_help_subcommand(true);
    completions::write(folder, &command)?;
    manual::write(folder, &command)?;
    println!("pages: written to {}", folder.display());
    Ok(())
}
