//! Manual pages: what clap knows of each subcommand, and the sections that it does not: examples, exit status, files,
//! environment, and where to read on.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;

use crate::sections::{self, Section};

const PROGRAM: &str = "discnice";
/// A command may stand where a subcommand does, which clap does not know.
const SYNOPSIS: &str = ".SH SYNOPSIS\n\\fBdiscnice\\fR [\\fIOPTIONS\\fR of run] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.br\n\
                        \\fBdiscnice\\fR \\fISUBCOMMAND\\fR ...\n";

/// Writes a page for the program, one for each subcommand, and the one of the configuration.
pub fn write(folder: &Path, program: &Command) -> anyhow::Result<()> {
    let mut pages = vec![("discnice.1".to_owned(), overview(program)?)];
    for subcommand in program.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages.extend(family(PROGRAM, subcommand)?);
    }
    let class = program.find_subcommand("class").and_then(|class| class.find_subcommand("set"));
    pages.push(("discnice-config.5".into(), config(class.context("no `class set`")?)?));
    for (name, text) in pages {
        let path = folder.join(&name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The page of a subcommand, and those of its own subcommands.
fn family(parent: &str, command: &Command) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let name = format!("{parent}-{}", command.get_name());
    let words = name.replace('-', " ");
    // clap keeps names that live as long as the program.
    let lasting: &'static str = name.clone().leak();
    let own = command.clone().name(lasting).bin_name(words).display_name(lasting);
    let mut pages = vec![(format!("{name}.1"), page(&own, &name)?)];
    for subcommand in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages.extend(family(&name, subcommand)?);
    }
    Ok(pages)
}

/// One page, with everything behind the options as text.
fn page(command: &Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let man = Man::new(command.clone()).section("1").manual("DiscNice");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    if name == PROGRAM {
        text.extend(SYNOPSIS.bytes());
    } else {
        man.render_synopsis_section(&mut text)?;
    }
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(examples) = command.get_after_help() {
        text.extend(examples_section(&examples.to_string()).bytes());
    }
    for section in sections::of(name) {
        text.extend(section.roff().bytes());
    }
    Ok(text)
}

fn overview(program: &Command) -> anyhow::Result<Vec<u8>> {
    let mut text = page(&program.clone().bin_name(PROGRAM), PROGRAM)?;
    let mut list = String::from(".SH SUBCOMMANDS\n");
    for subcommand in program.get_subcommands().filter(|one| !one.is_hide_set()) {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(
            list,
            ".TP\n\\fBdiscnice\\-{}\\fR(1)\n{}\n",
            sections::escaped(subcommand.get_name()),
            sections::escaped(&about)
        );
    }
    let place = String::from_utf8(std::mem::take(&mut text)).context("a page in UTF-8")?;
    let (before, after) = place.split_once(".SH SUBCOMMANDS").context("a list of subcommands")?;
    let rest = after.find("\n.SH ").map_or("", |at| &after[at + 1..]);
    Ok(format!("{before}{list}{rest}").into_bytes())
}

/// `Examples:` and what stands below it, line for line.
fn examples_section(text: &str) -> String {
    let lines = text.lines().filter(|line| *line != "Examples:");
    let lines: String = lines.map(|line| sections::escaped(line.trim_start()) + "\n").collect();
    format!(".SH EXAMPLES\n.nf\n{lines}.fi\n")
}

/// The page of config.toml: its keys are the options of `class set`.
fn config(class_set: &Command) -> anyhow::Result<Vec<u8>> {
    let mut text = String::from(".TH discnice\\-config 5 \"\" \"DiscNice\" \"DiscNice\"\n");
    for section in sections::CONFIG {
        text += &section.roff();
    }
    text += ".SH KEYS OF CLASSES\nThey are the options of \\fBdiscnice\\-class\\-set\\fR(1) without their dashes.\n";
    for option in class_set.get_opts().filter(|one| !one.is_hide_set()) {
        let Some(name) = option.get_long().filter(|name| *name != "help") else { continue };
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = write!(
            text,
            ".TP\n\\fB{}\\fR\n{}\n",
            sections::escaped(name),
            sections::escaped(&help)
        );
    }
    text += &Section::SEE_ALSO.roff();
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use clap::CommandFactory;

    use super::*;

    fn pages() -> Vec<(String, String)> {
        let folder = std::env::temp_dir().join(format!("discnice-pages-{}", std::process::id()));
        crate::write_manual(&folder).unwrap();
        let mut pages: Vec<(String, String)> = fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".1") || name.ends_with(".5"))
            .map(|name| (name.clone(), fs::read_to_string(folder.join(name)).unwrap()))
            .collect();
        let groff = |name: &str| {
            let mut groff = Process::new("groff");
            groff.args(["-man", "-ww", "-Tutf8", "-z"]).arg(folder.join(name)).output()
        };
        for (name, _) in &pages {
            let Ok(said) = groff(name) else {
                discnice_requirements::skipped(module_path!(), format_args!("no groff"));
                break;
            };
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert_eq!(said, "", "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
        pages.sort();
        pages
    }

    #[test]
    fn every_page_has_every_section() {
        let pages = pages();
        let subcommands = discnice_cli::commands::Cli::command();
        for subcommand in subcommands.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("discnice-{}.1", subcommand.get_name());
            assert!(pages.iter().any(|(page, _)| *page == name), "no {name}");
        }
        for (name, text) in pages.iter().filter(|(name, _)| name.ends_with(".1")) {
            for section in [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "EXIT STATUS",
                "FILES",
                "ENVIRONMENT",
                "SEE ALSO",
            ] {
                let found = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
                assert!(found.iter().any(|title| text.contains(title)), "{name} has no {section}");
            }
            let nested = name.matches('-').count() > 1;
            assert!(nested || text.contains(".SH EXAMPLES\n"), "{name} has no examples");
        }
        let (_, config) = pages.iter().find(|(name, _)| name == "discnice-config.5").unwrap();
        for key in ["strict", "disk\\-read", "meta\\-ops", "memory\\-high", "weight"] {
            assert!(config.contains(key), "{key}");
        }
    }
}
