//! Nouns in the names of public types: each is a term of the glossary, or a word that is listed as one that needs no entry.
//!
//! A new word for something that has a name already is so noticed when it comes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, bail};

use crate::code::code;
use crate::type_names::is_of_tests;
use crate::{files, names};

/// Where terms are defined: each in bold or italics.
const GLOSSARY: &str = "docs/glossary.md";
/// Words that need no entry there, one a line.
const LISTED: &str = "xtask/src/nouns.txt";

/// Checks the public types of all crates.
pub(crate) fn check() -> anyhow::Result<()> {
    let workspace = files::workspace()?;
    let read =
        |name: &str| fs::read_to_string(workspace.join(name)).with_context(|| name.to_owned());
    let listed: BTreeSet<String> = read(LISTED)?.lines().map(str::to_owned).collect();
    let known = &terms(&read(GLOSSARY)?) | &listed;
    let (mut wrong, mut used) = (Vec::new(), BTreeMap::new());
    files::walk(&workspace.join("crates"), &["rs"], &mut |path| {
        // What lies above the workspace may have any name.
        let shown = path.strip_prefix(&workspace)?;
        if !shown.components().any(|part| part.as_os_str() == "src") || is_of_tests(shown) {
            return Ok(());
        }
        let text = fs::read_to_string(path)?;
        for name in names::read(&code(&text)).types {
            used.extend(nouns(&name).map(|noun| (noun, format!("{}: {name}", shown.display()))));
        }
        Ok(())
    })?;
    let unknown = used.iter().filter(|(noun, _)| !known.contains(*noun));
    wrong.extend(unknown.map(|(noun, place)| {
        format!("{place}: {noun:?} is neither a term of {GLOSSARY} nor listed in {LISTED}")
    }));
    let idle = listed.iter().filter(|noun| !used.contains_key(*noun));
    wrong.extend(idle.map(|noun| format!("{LISTED}: {noun:?} is in the name of no public type")));
    if !wrong.is_empty() {
        bail!("nouns of public types:\n  {}", wrong.join("\n  "));
    }
    println!("nouns: {} in the names of public types, all of them known", used.len());
    Ok(())
}

/// Words of what stands in asterisks.
fn terms(glossary: &str) -> BTreeSet<String> {
    let lines = glossary.lines().flat_map(|line| line.split('*').skip(1).step_by(2));
    let bold = glossary.split("**").skip(1).step_by(2);
    let words = lines.chain(bold).flat_map(|term| term.split(|c: char| !c.is_alphabetic()));
    words.filter(|word| !word.is_empty()).map(singular).collect()
}

/// The words of a name in camel case.
fn nouns(name: &str) -> impl Iterator<Item = String> {
    let begins = name.char_indices().filter(|(_, c)| c.is_ascii_uppercase()).map(|(at, _)| at);
    let mut begins = begins.peekable();
    let words = std::iter::from_fn(move || {
        let begin = begins.next()?;
        name.get(begin..begins.peek().copied().unwrap_or(name.len()))
    });
    words.map(singular)
}

/// A word in small letters, without the ending of a plural.
fn singular(word: &str) -> String {
    let word = word.to_lowercase();
    if word == "series" || ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        return word;
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let long = ["sses", "xes", "ches", "shes"].iter().any(|end| word.ends_with(end));
    let end = if long { "es" } else { "s" };
    word.strip_suffix(end).unwrap_or(&word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nouns_of_a_name_are_its_words() {
        let of = |name| nouns(name).collect::<Vec<_>>();
        assert_eq!(of("MappedClass"), ["mapped", "class"]);
        assert_eq!(of("Limits"), ["limit"]);
        assert_eq!(of("Tcp4Sockets"), ["tcp4", "socket"]);
        assert_eq!(of("EntriesClassesStatus"), ["entry", "class", "status"]);
    }

    #[test]
    fn terms_are_what_is_emphasized() {
        let found = terms("- **mapped class**, **board**: the *others'* traffic is not one.\n");
        assert_eq!(found, ["board", "class", "mapped", "other"].map(str::to_owned).into());
    }
}
