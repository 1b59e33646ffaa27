//! The command line: from words to a subcommand, and from an error of usage to one line.
//!
//! A command may stand where a subcommand would: `discnice tar …`, `discnice -- tar …` and `discnice --disk 5M tar …`
//! are `discnice run …`. A word that is neither a subcommand nor a program gets the subcommand that is most like it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::commands::Cli;
use crate::complaint::{one_line, suggestion};
use crate::program;

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// A subcommand.
    Do(Box<Cli>),
    /// Text for standard output: help, or the version.
    Show(clap::builder::StyledStr),
    /// It cannot be understood: one line.
    Refuse(String),
}

/// Parses a command line; its first word is the name of this program.
#[must_use]
pub fn parse(words: &[OsString]) -> Asked {
    if words.len() < 2 {
        return Asked::Show(Cli::command().render_help());
    }
    let parsed = match Cli::try_parse_from(words) {
        Err(error) if names_a_command(words, &error) => Cli::try_parse_from(with_run(words)),
        parsed => parsed,
    };
    match parsed {
        Ok(cli) => Asked::Do(Box::new(cli)),
        Err(error) if error.use_stderr() => Asked::Refuse(one_line(&error)),
        Err(help) => Asked::Show(help.render()),
    }
}

/// Whether the first word is the command to run, or an option of `run`.
fn names_a_command(words: &[OsString], error: &clap::Error) -> bool {
    let Some(first) = words.get(1) else { return false };
    if first.as_encoded_bytes().starts_with(b"-") {
        return error.use_stderr();
    }
    let is_subcommand = || first == "help" || Cli::command().find_subcommand(first).is_some();
    error.kind() == ErrorKind::InvalidSubcommand
        && !is_subcommand()
        && (program::find(first).is_some() || suggestion(error).is_none())
}

fn with_run(words: &[OsString]) -> Vec<OsString> {
    let mut words = words.to_vec();
    words.insert(1, "run".into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Asked {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(&words)
    }

    fn refused(words: &[&str]) -> String {
        match asked(words) {
            Asked::Refuse(line) => line,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    /// The debug text of what is asked for: equal for equal commands.
    fn meant(words: &[&str]) -> String {
        match asked(words) {
            Asked::Do(cli) => format!("{cli:?}"),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn a_command_needs_no_run_and_no_dashes() {
        let full = meant(&["discnice", "run", "--", "ls", "-la", "--disk", "5M"]);
        for short in [
            &["discnice", "run", "ls", "-la", "--disk", "5M"][..],
            &["discnice", "ls", "-la", "--disk", "5M"],
            &["discnice", "--", "ls", "-la", "--disk", "5M"],
        ] {
            assert_eq!(meant(short), full, "{short:?}");
        }
        let limited = meant(&["discnice", "run", "--disk", "5M", "--", "ls", "-h"]);
        assert_eq!(meant(&["discnice", "--disk", "5M", "ls", "-h"]), limited);
        assert_eq!(meant(&["discnice", "-d", "5M", "ls", "-h"]), limited);
        assert_eq!(meant(&["discnice", "run", "--disk=5M", "ls", "-h"]), limited);
        assert_eq!(
            meant(&["discnice", "no-such-program"]),
            meant(&["discnice", "run", "no-such-program"])
        );
    }

    #[test]
    fn typos_get_what_was_meant() {
        for (words, meant) in [
            (&["discnice", "stauts"][..], "'stauts'; did you mean status?"),
            (&["discnice", "detahc", "1"], "did you mean detach?"),
            (&["discnice", "run", "--dsik", "5M", "ls"], "'--dsik' found; did you mean --disk?"),
            (&["discnice", "--dsik", "5M", "ls"], "did you mean --disk?"),
            (&["discnice", "run", "--mechanism", "frezee", "ls"], "did you mean freeze?"),
            (&["discnice", "class", "lsit"], "did you mean list?"),
            (&["discnice", "run", "--bwlimit", "5M", "ls"], "did you mean --disk or --net?"),
            (&["discnice", "attach", "--read=5M", "1"], "did you mean --disk-read?"),
            (&["discnice", "order", "--read"], "found; see `discnice order --help`"),
            (&["discnice", "rules", "show"], "'show'; see `discnice rules --help`"),
            (&["discnice", "status", "--frobnicate"], "found; see `discnice status --help`"),
            (&["discnice", "run", "--no-such-option", "ls"], "see `discnice run --help`"),
            (&["discnice", "help", "nosuch"], "'nosuch'; see `discnice --help`"),
        ] {
            let line = refused(words);
            assert!(line.contains(meant) && !line.contains('\n'), "{words:?}: {line}");
        }
    }

    #[test]
    fn help_is_no_error() {
        for words in [
            &["discnice"][..],
            &["discnice", "--help"],
            &["discnice", "-h"],
            &["discnice", "help"],
            &["discnice", "help", "run"],
            &["discnice", "run", "--help"],
            &["discnice", "--version"],
        ] {
            assert!(matches!(asked(words), Asked::Show(_)), "{words:?}");
        }
    }
}
