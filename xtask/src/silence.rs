//! No test vanishes: none is ignored, and none ends before its end without a word.

use std::fs;

use anyhow::{Context, bail};

use crate::files;

/// Where Rust code of ours lies.
const FOLDERS: &[&str] = &["crates", "eval", "tests", "xtask", "bindings", "fuzz"];
// Written so that this file does not find itself.
const IGNORED: &str = concat!("#[", "ignore");

const SILENT: [&str; 2] = [concat!("ret", "urn;"), concat!("ret", "urn }")];

/// Checks every file of the workspace.
pub fn check() -> anyhow::Result<()> {
    let workspace = files::workspace()?;
    let (mut tests, mut wrong) = (0, Vec::new());
    for folder in FOLDERS {
        files::walk(&workspace.join(folder), &["rs"], &mut |path| {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            tests += text.lines().filter(|line| line.trim() == "#[test]").count();
            let found = offences(&text);
            wrong.extend(found.iter().map(|what| format!("{}:{what}", path.display())));
            Ok(())
        })?;
    }
    if !wrong.is_empty() {
        bail!("tests:\n  {}", wrong.join("\n  "));
    }
    println!("tests: {tests}, none ignored, none that ends early without saying so");
    Ok(())
}

/// Lines, with what is wrong there.
fn offences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The line that ends the test that a line is in.
    let mut end: Option<String> = None;
    let mut marked = false;
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let margin = &line[..line.len() - bare.len()];
        if bare.starts_with(IGNORED) {
            found.push(format!("{}: an ignored test", number + 1));
        }
        marked |= bare == "#[test]";
        if marked && bare.starts_with("fn ") {
            (marked, end) = (false, Some(format!("{margin}}}")));
        } else if end.as_deref() == Some(line) {
            end = None;
        }
        let silent = SILENT.iter().any(|end| bare.contains(end));
        if end.is_some() && silent && !bare.starts_with("//") {
            found.push(format!("{}: a test ends without a word: use skip!", number + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vanishes_is_found() {
        let (mark, end) = (concat!("#[te", "st]"), SILENT[0]);
        let early = format!("    {mark}\n    fn a() {{\n        {end}");
        assert_eq!(offences(&early), ["3: a test ends without a word: use skip!"]);
        let late = format!("{mark}\nfn a() {{\n    b();\n}}\n\nfn b() {{\n    {end}\n}}\n");
        assert_eq!(offences(&late), [""; 0]);
        let ignored = format!("{mark}\n{IGNORED} = \"fails\"]\nfn a() {{\n}}\n");
        assert_eq!(offences(&ignored), ["2: an ignored test"]);
    }
}
