//! `cargo xtask TASK`: checks and generators of the workspace that are neither compiler nor tests.

mod book;
mod circles;
mod code;
mod files;
mod layers;
mod names;
mod nouns;
mod prose;
mod references;
mod requirements;
mod silence;
mod size;
mod spans;
mod symbols;
mod type_names;
mod words;

use std::path::PathBuf;

use clap::Parser;

#[derive(Debug, Parser)]
enum Task {
    /// Dependencies run one way between crates and between files, what is linked into programs links almost nothing, and
    /// no crate uses two types of one name
    CheckLayers,
    /// The program is no larger than packages may make it
    CheckSize {
        /// The built program
        program: PathBuf,
    },
    /// The library exports just the symbols of its list, and cannot panic
    CheckSymbols {
        /// The built library
        library: PathBuf,
    },
    /// No test is ignored or ends early without a word
    CheckTests,
    /// Comments and documents call a process "it", doc comments are whole sentences, nouns of public types are
    /// known, and what documents refer to exists
    CheckWords,
    /// Each statement of the papers is cited by code and by a test; write docs/papers.md
    Requirements {
        /// Fail where docs/papers.md is not current, instead of writing it
        #[arg(long)]
        check: bool,
        /// List the statements that are open or refused, with the reason
        #[arg(long)]
        list: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::CheckLayers => layers::check(),
        Task::CheckSize { program } => size::check(&program),
        Task::CheckSymbols { library } => symbols::check(&library),
        Task::CheckTests => silence::check(),
        Task::CheckWords => {
            words::check().and_then(|()| nouns::check()).and_then(|()| prose::check())
        }
        Task::Requirements { check, list } => requirements::run(check, list),
    }
}
