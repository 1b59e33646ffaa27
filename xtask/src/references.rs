//! What a document refers to exists: files that it links or names, names in the code, and items of a file, written
//! `crate/src/file.rs::item`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::files;
use crate::spans::spans;

/// Folders of the workspace in which files and names are looked for.
const FOLDERS: &[&str] =
    &["bindings", "crates", "demo", "eval", "examples", "fuzz", "packaging", "tests", "xtask"];

/// Ends of the names of source files.
const SOURCES: &[&str] = &["rs", "py", "c", "h", "sh", "toml"];

/// Ends of names in code style that are files of this workspace.
const FILES: &[&str] = &[".rs", ".py"];

/// Words before the name of an item where it is defined.
const DEFINING: &[&str] =
    &["fn", "struct", "enum", "trait", "const", "static", "macro_rules!", "type"];

/// Names of the kernel and of other programs that no source file of ours contains.
const FOREIGN: &[&str] = &["do_sync_mmap_readahead", "io_uring_submit", "no_new_privs"];

/// Source files of the workspace, and the names in them.
pub struct Sources {
    files: Vec<PathBuf>,
    names: HashSet<String>,
}

impl Sources {
    /// Reads all source files.
    pub fn read(workspace: &Path) -> anyhow::Result<Self> {
        let mut sources = Self { files: Vec::new(), names: HashSet::new() };
        for folder in FOLDERS {
            files::walk(&workspace.join(folder), SOURCES, &mut |path| {
                // Names that only this check knows would count as existing.
                if *folder != "xtask" {
                    sources.add_names(path)?;
                }
                sources.files.push(path.to_owned());
                Ok(())
            })?;
        }
        Ok(sources)
    }

    fn add_names(&mut self, path: &Path) -> anyhow::Result<()> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let names = text.split(|c: char| !is_of_a_name(c)).filter(|name| is_long(name));
        self.names.extend(names.map(str::to_owned));
        Ok(())
    }

    /// Lines of a document in `folder`, with what they refer to and what does not exist.
    pub fn missing(&self, text: &str, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let broken = links(line).filter(|link| !folder.join(link).exists());
            found.extend(broken.map(|link| format!("{}: no file for the link {link}", number + 1)));
        }
        for (number, span) in spans(text).into_iter().filter(|(_, span)| span.in_code) {
            let named = span.text;
            if FILES.iter().any(|end| named.ends_with(end)) && !self.has_file(named) {
                found.push(format!("{number}: no file {named}"));
            }
            if let Some((path, item)) = named.split_once(".rs::") {
                let wrong = self.lacks_item(&format!("{path}.rs"), item);
                found.extend(wrong.map(|what| format!("{number}: {what}")));
            }
            if is_long(named) && !self.names.contains(named) && !FOREIGN.contains(&named) {
                found.push(format!("{number}: no source file contains {named}"));
            }
        }
        found
    }

    /// What is wrong with the name of an item of a file: no such file, more than one, or none that defines it.
    fn lacks_item(&self, path: &str, item: &str) -> Option<String> {
        let mut files = self.files.iter().filter(|file| file.ends_with(path));
        let (Some(file), other) = (files.next(), files.next()) else {
            return Some(format!("no file {path}"));
        };
        if other.is_some() {
            return Some(format!("more than one file is called {path}; name its folder, too"));
        }
        let text = fs::read_to_string(file).unwrap_or_default();
        (!defines(&text, item)).then(|| format!("{path} defines no {item}"))
    }

    /// True if a source file has this path, from the workspace or from a folder in it.
    fn has_file(&self, path: &str) -> bool {
        // `evaluation.py --option` and patterns (`*.py`) are no paths.
        if path.contains(|c: char| !is_of_a_name(c) && !"/.-".contains(c)) {
            return true;
        }
        self.files.iter().any(|file| file.ends_with(path))
    }
}

/// True if a source file defines a function, a type, a constant or a macro of this name.
fn defines(text: &str, item: &str) -> bool {
    let mut words =
        text.split(|c: char| !is_of_a_name(c) && c != '!').filter(|word| !word.is_empty());
    let mut before = "";
    words.any(|word| {
        let found = DEFINING.contains(&before) && word == item;
        before = word;
        found
    })
}

/// Paths of links to files of this workspace in a line, without the heading that they name.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.filter_map(|target| target.split('#').next());
    paths.filter(|path| !path.is_empty() && !path.contains(':'))
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// True of a name in lower case of three words or more: a test's or a function's.
fn is_long(name: &str) -> bool {
    name.split('_').filter(|word| !word.is_empty()).count() >= 3
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        Sources {
            files: vec![PathBuf::from("/w/crates/a/src/b.rs")],
            names: HashSet::from(["a_test_of_it".to_owned()]),
        }
    }

    #[test]
    fn links_lead_to_files() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text =
            "[a](src/main.rs) and [b](../README.md#heading), [c](#heading), [d](https://a/b)";
        assert_eq!(sources().missing(text, here), [""; 0]);
        let missing = sources().missing("one\n[a](src/none.rs) [b](Cargo.toml)", here);
        assert_eq!(missing, ["2: no file for the link src/none.rs"]);
    }

    #[test]
    fn named_files_exist() {
        let here = Path::new("/");
        assert_eq!(sources().missing("`b.rs`, `a/src/b.rs`, `*.rs`, b/c.rs", here), [""; 0]);
        assert_eq!(sources().missing("`c/b.rs`", here), ["1: no file c/b.rs"]);
    }

    #[test]
    fn items_exist_in_the_file_that_is_named() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let known = Sources {
            files: vec![
                here.join("src/main.rs"),
                here.join("src/words.rs"),
                here.join("a/words.rs"),
            ],
            names: HashSet::new(),
        };
        let wrong = |text: &str| known.missing(text, here);
        assert_eq!(wrong("`main.rs::main`, `src/main.rs::Task`"), [""; 0]);
        assert_eq!(wrong("`main.rs::mein`"), ["1: main.rs defines no mein"]);
        assert_eq!(wrong("a\n`none.rs::main`"), ["2: no file none.rs"]);
        let two = "1: more than one file is called words.rs; name its folder, too";
        assert_eq!(wrong("`words.rs::check`"), [two]);
        assert_eq!(wrong("`src/words.rs::check`"), [""; 0]);
    }

    #[test]
    fn definitions_are_told_from_uses() {
        assert!(defines("pub(crate) fn one(a: u8) {}", "one"));
        assert!(defines("macro_rules! hooks { () => {} }", "hooks"));
        assert!(!defines("one(a); // fn, one", "one(a)") && !defines("let a = one(b);", "one"));
    }

    #[test]
    fn named_tests_exist() {
        let here = Path::new("/");
        assert_eq!(
            sources().missing("`a_test_of_it`, `two_words`, `__one`, a_b_c, `A_B_C`", here),
            [""; 0]
        );
        let missing = sources().missing("a\n`a_test_of_that`", here);
        assert_eq!(missing, ["2: no source file contains a_test_of_that"]);
    }
}
