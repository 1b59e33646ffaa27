//! Finds the comment lines by which code and tests cite entries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::files;

/// Folders with code that may cite.
const FOLDERS: [&str; 6] = ["bindings", "crates", "eval/benches", "eval/src", "examples", "tests"];
/// Their languages, by file name extension.
const EXTENSIONS: [&str; 5] = ["rs", "c", "h", "py", "sh"];

/// One citation of one entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Citation {
    pub entry: String,
    pub kind: Kind,
    /// Path within the workspace.
    pub path: String,
    pub line: usize,
    /// Name of the item below it, if it has one.
    pub item: Option<String>,
}

/// What cites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Code that users get.
    Code,
    /// A test.
    Test,
    /// Examples, benchmarks and experiments.
    Measurement,
}

/// Where each entry is cited.
pub type Cited<'a> = BTreeMap<&'a str, Vec<&'a Citation>>;

/// Reads all citations, by path and line.
pub fn read(workspace: &Path) -> anyhow::Result<Vec<Citation>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        files::walk(&workspace.join(folder), &EXTENSIONS, &mut |path| {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let shown = path.strip_prefix(workspace).unwrap_or(path).display().to_string();
            found.extend(of(&shown, &text));
            Ok(())
        })?;
    }
    Ok(found)
}

/// The citations in one file.
fn of(path: &str, text: &str) -> Vec<Citation> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let Some(entries) = bare.strip_prefix("//= ").or_else(|| bare.strip_prefix("#= ")) else {
            continue;
        };
        let item = Item::below(&lines[number + 1..]);
        for entry in entries.split(',').map(str::trim) {
            found.push(Citation {
                entry: entry.to_owned(),
                kind: kind(path, &item),
                path: path.to_owned(),
                line: number + 1,
                item: item.name.clone(),
            });
        }
    }
    found
}

/// Whether users get what a citation in this file stands above.
fn kind(path: &str, item: &Item) -> Kind {
    let of_product = path.starts_with("crates/") || path.starts_with("bindings/");
    let is_python_test = item.name.as_deref().is_some_and(|name| name.starts_with("test_"));
    if item.is_test || is_python_test || (path.contains("/tests/") && path.ends_with(".c")) {
        Kind::Test
    } else if of_product && ["/src/", "/python/discnice/"].iter().any(|part| path.contains(part)) {
        Kind::Code
    } else {
        Kind::Measurement
    }
}

/// The item that a comment stands above.
#[derive(Debug, Default, PartialEq, Eq)]
struct Item {
    name: Option<String>,
    is_test: bool,
}

/// Words before the name of an item.
const BEFORE: [&str; 11] =
    ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "def", "class", "#define"];

impl Item {
    fn below(lines: &[&str]) -> Self {
        let mut item = Self::default();
        let mut in_attribute = false;
        for bare in lines.iter().map(|line| line.trim()) {
            item.is_test |= bare == "#[test]";
            let begins = bare.starts_with("#[") || bare.starts_with("#!") || bare.starts_with('@');
            if in_attribute || begins {
                in_attribute = !bare.ends_with(']') && !bare.starts_with('@');
            } else if !is_comment(bare) {
                item.name = name(bare);
                break;
            }
        }
        item
    }
}

fn is_comment(bare: &str) -> bool {
    bare.is_empty()
        || ["//", "#=", "/*", "*", "# ", "\"\"\""].iter().any(|start| bare.starts_with(start))
}

/// The name that a line declares: after a keyword, or before a colon as a field or a variant.
fn name(line: &str) -> Option<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = line.split_whitespace().collect();
    // `const fn` and `unsafe fn` declare what follows `fn`.
    let keyword = words.iter().rposition(|word| BEFORE.contains(word));
    let declared = keyword.and_then(|at| words.get(at + 1)).copied();
    let field = words.iter().find(|word| word.ends_with(':')).copied();
    let variant = words.first().copied().filter(|word| word.starts_with(char::is_uppercase));
    let found = declared.or(field).or(variant)?;
    let name: String = found.chars().take_while(|&c| is_of_name(c)).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(path: &str, text: &str) -> Vec<(String, Kind, Option<String>)> {
        of(path, text).into_iter().map(|one| (one.entry, one.kind, one.item)).collect()
    }

    fn one(entry: &str, kind: Kind, item: &str) -> (String, Kind, Option<String>) {
        (entry.into(), kind, Some(item.into()))
    }

    #[test]
    fn items_and_tests_are_told_apart() {
        let text = "//= p/1-a, p/1-b\n/// Doc.\n#[must_use]\npub const fn decide(x: u8) {}\n\
                    //= p/1-a\n#[test]\nfn it_decides() {}\n    //= p/2-c\n    /// Doc.\n    \
                    pub alpha: f64,\n//= p/3-d\nConst { x }";
        let wanted = [
            one("p/1-a", Kind::Code, "decide"),
            one("p/1-b", Kind::Code, "decide"),
            one("p/1-a", Kind::Test, "it_decides"),
            one("p/2-c", Kind::Code, "alpha"),
            one("p/3-d", Kind::Code, "Const"),
        ];
        assert_eq!(cited("crates/x/src/lib.rs", text), wanted);
    }

    #[test]
    fn attributes_of_several_lines_are_passed_over() {
        let text = "//= p/1-a\n#[arg(\n    long,\n    value_name = \"x\"\n)]\nmetrics: Vec<u8>,";
        assert_eq!(cited("crates/x/src/a.rs", text), [one("p/1-a", Kind::Code, "metrics")]);
    }

    #[test]
    fn places_tell_what_users_get() {
        let rust = "//= p/1-a\nfn go() {}";
        assert_eq!(cited("eval/src/a.rs", rust)[0].1, Kind::Measurement);
        assert_eq!(cited("crates/x/examples/a.rs", rust)[0].1, Kind::Measurement);
        assert_eq!(cited("crates/x/tests/a.c", "//= p/1-a\nint main(void)")[0].1, Kind::Test);
        let python = "#= p/1-a\ndef test_it():";
        assert_eq!(cited("bindings/python/tests/t.py", python)[0].1, Kind::Test);
        let python = "#= p/1-a\ndef testpoint():";
        assert_eq!(cited("bindings/python/python/discnice/a.py", python)[0].1, Kind::Code);
        assert_eq!(cited("crates/x/src/a.rs", "let a = 1; //= p/1-a"), []);
    }
}
