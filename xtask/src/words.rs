//! Comments and names call a process or thread "it", and doc comments are whole sentences of their own.

use std::fs;

use anyhow::{Context, bail};

use crate::files;

/// Folders that are checked.
const CHECKED: &[&str] = &["crates", "eval", "fuzz", "tests", "xtask"];

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

/// Keywords in front of the name of an item.
const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "const", "static", "mod", "type"];

/// Names of the account `nobody`, which is a word for a person all the same.
const ACCOUNT: &[&str] =
    &["NOBODY", "as_nobody", "run_as_nobody", "probe_as_nobody", "can_become_nobody"];

/// Marks a line of a comment that is about people: `(person)` at its end.
const ABOUT_PEOPLE: &str = "(person)";

/// Checks every Rust file of the folders that are done.
pub fn check() -> anyhow::Result<()> {
    let workspace = &files::workspace()?;
    let (mut read, mut wrong) = (0, Vec::new());
    for folder in CHECKED {
        files::walk(&workspace.join(folder), &["rs"], &mut |path| {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let shown = path.strip_prefix(workspace).unwrap_or(path).display();
            let all = offences(&text).into_iter().chain(personal_names(&text));
            wrong.extend(all.map(|what| format!("{shown}:{what}")));
            read += 1;
            Ok(())
        })?;
    }
    if !wrong.is_empty() {
        bail!(
            "comments and names: a process is \"it\", and a doc comment names its item:\n  {}",
            wrong.join("\n  ")
        );
    }
    println!("words: {read} files, no comment or name calls a process a person");
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

/// Lines, with the names of items that have a word for people in them.
fn personal_names(text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let names = lines
        .flat_map(|(number, line)| names(line).into_iter().map(move |name| (number + 1, name)));
    let personal = |name: &str| name.split('_').any(is_personal) && !ACCOUNT.contains(&name);
    names.filter(|(_, name)| personal(name)).map(|(at, name)| format!("{at}: {name}")).collect()
}

/// The names of the items that begin in a line.
fn names(line: &str) -> Vec<&str> {
    let code = line.split_once("//").map_or(line, |(code, _)| code);
    let code = code.split('"').next().unwrap_or_default();
    let words: Vec<&str> = code.split_whitespace().collect();
    let items = words.windows(2).filter(|pair| ITEMS.contains(&pair[0]));
    items.filter_map(|pair| split(pair[1]).next()).collect()
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
    fn names_call_a_process_it() {
        let text = "    fn who_waits(a: u8) {\nconst NOBODY: u32 = 1;\nlet who = 2; // fn he\nmod whole;\npub struct His_;\n";
        assert_eq!(personal_names(text), ["1: who_waits", "5: His_"]);
    }

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
