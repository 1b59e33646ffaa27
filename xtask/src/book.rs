//! The book: each page is in its table of contents, and each decision record says what it must.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::files;

/// The folder of the book.
const BOOK: &str = "docs";
/// Its table of contents, in which mdBook finds all pages.
const CONTENTS: &str = "SUMMARY.md";
/// The folder of decision records in it, and their index.
const RECORDS: &str = "adr";
const INDEX: &str = "adr/README.md";

/// What a record has, besides a title.
const PARTS: &[&str] = &["\nStatus: ", " Date: 20", "Alternatives", "Decision", "Consequences"];

/// Tells what is wrong with the book in the workspace.
pub fn check(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let book = workspace.join(BOOK);
    let read = |name: &str| {
        let path = book.join(name);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let mut pages = Vec::new();
    files::walk(&book, &["md"], &mut |path| {
        pages.push(path.strip_prefix(&book)?.to_owned());
        Ok(())
    })?;
    let mut wrong = orphans(&read(CONTENTS)?, &pages);
    let index = read(INDEX)?;
    for page in pages.iter().filter(|page| is_record(page)) {
        let text = read(&page.to_string_lossy())?;
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        wrong.extend(
            lacks(&text, &index, &name).map(|what| format!("{BOOK}/{RECORDS}/{name}: {what}")),
        );
    }
    for page in pages.iter().filter(|page| *page != Path::new(CONTENTS)) {
        let text = read(&page.to_string_lossy())?;
        let depth = page.components().count() - 1;
        let broken = broken_links(&text, depth);
        wrong.extend(broken.map(|to| format!("{BOOK}/{}: the book has no {to}", page.display())));
    }
    Ok(wrong)
}

/// Links that lead nowhere in the book, where mdBook writes `x.html` for `x.md`, but `index.html` for a README, and nothing that is
/// outside its folder, above which the page lies so deep.
fn broken_links(text: &str, depth: usize) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    links.filter(move |to| {
        let is_relative = !to.contains("://");
        is_relative && (to.ends_with("README.md") || to.matches("../").count() > depth)
    })
}

/// Pages that the table of contents does not link.
fn orphans(contents: &str, pages: &[PathBuf]) -> Vec<String> {
    let is_linked = |page: &Path| {
        page == Path::new(CONTENTS) || contents.contains(&format!("]({})", page.display()))
    };
    let missing = pages.iter().filter(|page| !is_linked(page));
    missing.map(|page| format!("{BOOK}/{CONTENTS}: no link to {}", page.display())).collect()
}

fn is_record(page: &Path) -> bool {
    page.parent() == Some(Path::new(RECORDS)) && page != Path::new(INDEX)
}

/// What a record, or its line in the index, lacks.
fn lacks(text: &str, index: &str, name: &str) -> impl Iterator<Item = String> {
    let parts = PARTS.iter().filter(move |part| !text.contains(*part));
    let parts = parts.map(|part| format!("no {:?}", part.trim()));
    let unlisted = !index.contains(&format!("]({name})"));
    parts.chain(unlisted.then(|| format!("not in {INDEX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_link_is_an_orphan() {
        let pages = ["SUMMARY.md", "a.md", "adr/0001-b.md"].map(PathBuf::from);
        assert_eq!(orphans("- [A](a.md)\n- [B](adr/0001-b.md)", &pages), [""; 0]);
        assert_eq!(
            orphans("[A](a.md), adr/0001-b.md", &pages),
            ["docs/SUMMARY.md: no link to adr/0001-b.md"]
        );
    }

    #[test]
    fn a_record_says_what_it_must() {
        let whole = "# 1. A\n\nStatus: accepted. Date: 2026-01-02.\n\n## Decision\nAlternatives. Consequences";
        let wrong = |text: &str, index: &str| lacks(text, index, "0001-a.md").collect::<Vec<_>>();
        assert_eq!(wrong(whole, "[A](0001-a.md)"), [""; 0]);
        assert_eq!(wrong(whole, "[A](0002-a.md)"), ["not in adr/README.md"]);
        let dateless = whole.replace(" Date: 2026-01-02.", "");
        assert_eq!(wrong(&dateless, "[A](0001-a.md)"), ["no \"Date: 20\""]);
    }

    #[test]
    fn links_that_lead_nowhere_in_the_book_are_found() {
        let text = "[a](a.md#b) [c](commands/) [d](https://x/../README.md)";
        assert_eq!(broken_links(text, 0).count(), 0);
        let text = "[a](commands/README.md#x), [b](../packaging/), [c](../../a.md)";
        let broken = |depth| broken_links(text, depth).collect::<Vec<_>>();
        assert_eq!(broken(0), ["commands/README.md", "../packaging/", "../../a.md"]);
        assert_eq!(broken(1), ["commands/README.md", "../../a.md"]);
    }

    #[test]
    fn only_records_are_records() {
        assert!(is_record(Path::new("adr/0001-a.md")));
        assert!(!is_record(Path::new("adr/README.md")) && !is_record(Path::new("a.md")));
    }
}
