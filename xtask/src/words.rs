//! Comments call a process or thread "it", and doc comments are whole sentences of their own.

use std::fs;

use anyhow::{Context, bail};

use crate::files;

/// Folders that are checked; this list only grows.
const DONE: &[&str] = &[
    "crates/benice",
    "crates/budget",
    "crates/capi",
    "crates/cli",
    "crates/escape",
    "crates/estimator",
    "crates/external",
    "crates/fleet",
    "crates/graybox",
    "crates/loading",
    "crates/manners",
    "crates/metrics",
    "crates/notify",
    "crates/pagecache",
    "crates/paths",
    "crates/plot",
    "crates/policy",
    "crates/policyd",
    "crates/preload",
    "crates/profile",
    "crates/registry",
    "crates/regulator",
    "crates/sys",
    "crates/testpoint",
    "crates/units",
    "eval",
    "fuzz",
    "tests",
    "xtask",
];

/// Words for people, which no process or thread is.
const PERSONAL: &[&str] = &[
    "who",
    "whom",
    "whose",
    "whoever",
    "whomever",
    "somebody",
    "nobody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
    "he",
    "him",
    "his",
    "himself",
];

/// Beginnings of doc comments that say nothing without the item before or after.
const DEPENDENT: &[&str] = &["The same", "It has"];

/// Marks a line of a comment that is about people: `(person)` at its end.
const ABOUT_PEOPLE: &str = "(person)";

/// Checks every Rust file of the folders that are done.
pub fn check() -> anyhow::Result<()> {
    let workspace = files::workspace()?;
    let (mut read, mut wrong) = (0, Vec::new());
    for folder in DONE {
        files::walk(&workspace.join(folder), &["rs"], &mut |path| {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let shown = path.strip_prefix(workspace).unwrap_or(path).display();
            wrong.extend(offences(&text).iter().map(|what| format!("{shown}:{what}")));
            read += 1;
            Ok(())
        })?;
    }
    if !wrong.is_empty() {
        bail!(
            "comments: a process is \"it\", and a doc comment names its item:\n  {}",
            wrong.join("\n  ")
        );
    }
    println!("words: {read} files, no comment calls a process a person");
    Ok(())
}

/// Lines, with the words that are wrong there.
fn offences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_doc = false;
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = comment_of(line) else {
            in_doc = false;
            continue;
        };
        let doc = comment.strip_prefix('/').or_else(|| comment.strip_prefix('!'));
        let begins = doc.is_some() && !in_doc;
        in_doc = doc.is_some();
        let said = doc.unwrap_or(comment).trim();
        if said.ends_with(ABOUT_PEOPLE) {
            continue;
        }
        let dependent = DEPENDENT.iter().filter(|start| begins && starts_with(said, start));
        let prose = said.split('`').step_by(2);
        let personal = prose.flat_map(split).filter(|word| is_personal(word));
        found.extend(
            dependent.copied().chain(personal).map(|word| format!("{}: {word}", number + 1)),
        );
    }
    found
}

/// What stands behind the first `//` of a line that is in no string; `None` without a comment.
fn comment_of(line: &str) -> Option<&str> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'/' if !quoted && line.get(at..at + 2) == Some("//") => return line.get(at + 2..),
            b'"' if !escaped && line.get(..at).is_none_or(|before| !before.ends_with('\'')) => {
                quoted = !quoted;
            }
            _ => {}
        }
        escaped = byte == b'\\' && !escaped;
    }
    None
}

/// Words of a text without code.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// True of a word for people, in capital letters or not.
pub fn is_personal(word: &str) -> bool {
    PERSONAL.iter().any(|personal| word.eq_ignore_ascii_case(personal))
}

fn starts_with(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personal_words_are_found_in_comments_alone() {
        let text =
            "// Whoever waits, waits.\nlet who = 1; // he\n/// Of nobody\nfn somebody() {}\n";
        assert_eq!(offences(text), ["1: Whoever", "2: he", "3: nobody"]);
        assert_eq!(
            offences("let text = \"// who\";\nlet quote = '\"'; // a whole, the hero"),
            [""; 0]
        );
        assert_eq!(offences("/// The user `nobody`, `who`(1) and\n//! whole"), [""; 0]);
        assert_eq!(offences("let quote = \"\\\"\"; // who"), ["1: who"]);
    }

    #[test]
    fn doc_comments_stand_alone() {
        assert_eq!(offences("/// The same, later.\nfn a() {}"), ["1: The same"]);
        assert_eq!(offences("//! It has ended."), ["1: It has"]);
        assert_eq!(offences("/// Reads.\n/// The same again.\n/// It has one."), [""; 0]);
        assert_eq!(offences("/// It hashes.\n\n// The same reason as above."), [""; 0]);
        assert_eq!(offences("/// Reads.\nfn a() {}\n/// It has ended"), ["3: It has"]);
    }

    #[test]
    fn people_may_be_meant() {
        assert_eq!(offences("/// Users who may do this. (person)"), [""; 0]);
    }
}
