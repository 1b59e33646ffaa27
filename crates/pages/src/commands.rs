//! The book's pages of subcommands: what `--help` says, from the one definition of each option.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use discnice_cli::commands::Cli;

/// Where they are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands");
/// What `--help` is laid out for.
const COLUMNS: usize = 100;
const NOTE: &str = "<!-- made by `cargo pages book` -->";

/// Writes the pages.
pub fn write() -> anyhow::Result<()> {
    let (folder, pages) = (Path::new(FOLDER), all());
    fs::create_dir_all(folder).with_context(|| FOLDER)?;
    for (name, text) in &pages {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    println!("pages: {} written to {FOLDER}", pages.len());
    Ok(())
}

/// Name and text of each page; the first one lists the others.
fn all() -> Vec<(String, String)> {
    let program = Cli::command().disable_help_subcommand(true).term_width(COLUMNS);
    let mut list = format!(
        "# Commands\n\n{NOTE}\n\nWhat `discnice SUBCOMMAND --help` says. The manual pages say the same, with files, variables and exit statuses.\n\n\
         | subcommand | for |\n|---|---|\n"
    );
    let mut pages = Vec::new();
    for command in shown(&program) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(list, "| [{name}]({name}.md) | {} |", about.replace('|', "\\|"));
        let mut text = format!("# discnice {name}\n\n{NOTE}\n");
        add(&mut text, "discnice", command);
        pages.push((format!("{name}.md"), text));
    }
    pages.insert(0, ("README.md".into(), list));
    pages
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

/// Adds what a command says, and what its own subcommands say.
fn add(text: &mut String, parent: &str, command: &Command) {
    let words = format!("{parent} {}", command.get_name());
    let own = command.clone().disable_help_subcommand(true).bin_name(words.as_str());
    let help = own.term_width(COLUMNS).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n```text\n$ {words} --help\n{}\n```\n", help.join("\n").trim_end());
    for subcommand in shown(command) {
        add(text, &words, subcommand);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages that are missing, or say something else; and those of subcommands that there are none of.
    fn outdated(folder: &Path, pages: &[(String, String)]) -> Vec<String> {
        let is_other = |(name, text): &&(String, String)| {
            fs::read_to_string(folder.join(name)).ok().as_deref() != Some(text)
        };
        let others = pages.iter().filter(is_other).map(|(name, _)| name.clone());
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        let found = found.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let left = found.filter(|name| pages.iter().all(|(page, _)| page != name));
        others.chain(left).collect()
    }

    #[test]
    fn the_book_says_what_help_says() {
        let folder = Path::new(FOLDER);
        assert_eq!(outdated(folder, &all()), [""; 0], "run `cargo pages book`");
    }

    #[test]
    fn a_page_that_says_something_else_is_found() {
        let folder = std::env::temp_dir().join(format!("discnice-commands-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pages = all();
        for (name, text) in &pages {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::write(folder.join("run.md"), "other").unwrap();
        fs::write(folder.join("gone.md"), "").unwrap();
        fs::remove_file(folder.join("top.md")).unwrap();
        let found = outdated(&folder, &pages);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["run.md", "top.md", "gone.md"]);
    }
}
