//! The documents call a process or thread "it", as comments do, and what they refer to exists.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::book;
use crate::files;
use crate::references::Sources;
use crate::spans::spans;
use crate::words;

/// Documents, and folders of documents, that are checked.
const DOCUMENTS: &[&str] = &[
    "CONTRIBUTING.md",
    "README.md",
    "RELEASE.md",
    "SECURITY.md",
    "bindings/python/README.md",
    "docs",
    "packaging",
];

/// Documents in which words are not checked, with the reason.
const GENERATED: &[(&str, &str)] = &[(
    "docs/papers.md",
    "generated from statements beside the code, and checked by `requirements`",
)];

/// The document that shows the whole workspace: it names each crate.
const MAP: &str = "docs/architecture.md";

/// Words before `who` and `whose` that make these people, or before the account `nobody`.
const PEOPLE: &[&str] = &[
    "account",
    "administrator",
    "administrators",
    "author",
    "authors",
    "maintainer",
    "maintainers",
    "people",
    "person",
    "reader",
    "readers",
    "user",
    "users",
];

/// Personal words that may follow a word of `PEOPLE`.
const AFTER_PEOPLE: &[&str] = &["who", "whom", "whose", "nobody"];

/// Checks words and references of every document.
pub fn check() -> anyhow::Result<()> {
    let workspace = &files::workspace()?;
    let sources = Sources::read(workspace)?;
    let mut documents = Vec::new();
    for place in DOCUMENTS {
        files::walk(&workspace.join(place), &["md"], &mut |path| {
            documents.push(path.to_owned());
            Ok(())
        })?;
    }
    let mut wrong = book::check(workspace)?;
    for path in &documents {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(workspace).unwrap_or(path).display().to_string();
        let mut found = sources.missing(&text, path.parent().unwrap_or(workspace));
        if shown == MAP {
            found.extend(unnamed(&text, &workspace.join("crates"))?);
        }
        if !GENERATED.iter().any(|(name, _)| *name == shown) {
            found.extend(personal(&text));
        }
        wrong.extend(found.iter().map(|what| format!("{shown}:{what}")));
    }
    if !wrong.is_empty() {
        bail!(
            "documents: a process is \"it\", and links, files and names exist:\n  {}",
            wrong.join("\n  ")
        );
    }
    println!(
        "words: {} documents, none calls a process a person or refers to nothing",
        documents.len()
    );
    Ok(())
}

/// Folders of `crates` that a document does not name in code style.
fn unnamed(text: &str, crates: &Path) -> anyhow::Result<Vec<String>> {
    let named: HashSet<&str> =
        spans(text).into_iter().filter_map(|(_, span)| span.in_code.then_some(span.text)).collect();
    let entries = fs::read_dir(crates).with_context(|| crates.display().to_string())?;
    let mut missing = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !named.contains(name.as_str()) {
            missing.push(format!("1: does not name the crate {name}"));
        }
    }
    missing.sort();
    Ok(missing)
}

/// Lines, with words that make a process a person.
fn personal(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = String::new();
    for (number, line) in spans(text) {
        if line.in_code {
            before.clear();
            continue;
        }
        for word in words::split(line.text) {
            let word = word.to_lowercase();
            let about_people =
                AFTER_PEOPLE.contains(&word.as_str()) && PEOPLE.contains(&before.as_str());
            if words::is_personal(&word) && !about_people {
                found.push(format!("{number}: {word}"));
            }
            before = word;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_names_every_crate() {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        let wanted = ["1: does not name the crate Cargo.toml", "1: does not name the crate src"];
        assert_eq!(unnamed("`srcs`, src", xtask).unwrap(), wanted);
        assert_eq!(unnamed("`src` and `Cargo.toml`", xtask).unwrap(), [""; 0]);
    }

    #[test]
    fn a_process_is_no_person() {
        assert_eq!(personal("Whoever waits, waits.\nHis turn."), ["1: whoever", "2: his"]);
        assert_eq!(personal("The process who\nwaits"), ["1: who"]);
        assert_eq!(personal("A daemon, the whole of it, is there."), [""; 0]);
    }

    #[test]
    fn people_and_the_account_may_be_named() {
        let text = "A user who waits; users, who\nwait. The user nobody, `nobody` and `who`(1).";
        assert_eq!(personal(text), [""; 0]);
        assert_eq!(personal("The superuser\nwhose file it is"), ["2: whose"]);
        assert_eq!(personal("a user `x` who"), ["1: who"]);
        assert_eq!(personal("a user he"), ["1: he"]);
    }

    #[test]
    fn code_may_go_on_in_the_next_line_of_a_paragraph_only() {
        assert_eq!(personal("`a who\nhe` who"), ["2: who"]);
        assert_eq!(personal("`a\n\nhe"), ["3: he"]);
        assert_eq!(personal("```console\n$ a  # who\n```\nhe"), ["2: who", "4: he"]);
    }
}
