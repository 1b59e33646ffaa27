//! Reports: numbers of the papers beside ours, with plots.
//!
//! `verdict.rs` compares; `text.rs`, `markdown.rs` and `html.rs` print the same pages for a terminal,
//! a repository and a browser.

mod head;
mod html;
mod markdown;
mod page;
mod text;
mod verdict;

use anyhow::Context;
use discnice_plot::svg;

use crate::frame::experiment::Entry;
use crate::frame::record::{Archive, Record};
use head::{Head, plot_name};
pub use page::{Content, Page};
pub use text::{comparison, print, summary};

/// All tables and figures.
///
/// # Errors
/// A record cannot be read.
pub fn pages(entries: &[Entry], archive: &Archive) -> anyhow::Result<Vec<Page>> {
    entries.iter().map(|entry| Page::new(entry, archive)).collect()
}

/// Writes `report.md`, the plots and `report.html` beside the records.
///
/// # Errors
/// A record cannot be read, or the directory cannot be written.
pub fn write(entries: &[Entry], archive: &Archive) -> anyhow::Result<()> {
    let pages = pages(entries, archive)?;
    let records: Vec<Record> = entries
        .iter()
        .map(|entry| archive.load(entry.name))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let record = records.first().context("there are no records; run an experiment first")?;
    let mut facts = record.facts.clone();
    records.iter().for_each(|record| facts.add_commits(&record.facts.commit));
    let quick = records.iter().any(|record| record.settings.quick);
    let head = Head { facts: &facts, disk: &record.settings.disk, quick };
    for page in &pages {
        if let Content::Measured(measured) = &page.content {
            for (index, plot) in measured.plots.iter().enumerate() {
                archive.write(&plot_name(page.name, index), svg::draw(plot).as_bytes())?;
            }
        }
    }
    archive.write("report.md", markdown::print(&head, &pages).as_bytes())?;
    archive.write("report.html", html::print(&head, &pages).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::experiment::Body;
    use crate::frame::facts::Facts;
    use crate::frame::record::Settings;

    #[test]
    fn every_commit_that_was_measured_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::new(directory.path().into());
        let paper =
            "paper = \"p\"\nsection = \"1\"\nitem = \"i\"\ntitle = \"t\"\nphenomenon = \"p\"\n";
        let entry = |name| Entry { name, paper, body: Body::Missing("some part") };
        for (name, commit, quick) in [("one", "aaa", false), ("two", "bbb", true)] {
            let settings = Settings { quick, evaluator: String::new(), disk: String::new() };
            let facts = Facts { commit: commit.into(), ..Facts::default() };
            archive.store(&Record::new(name, String::new(), settings, facts)).unwrap();
        }
        write(&[entry("one"), entry("two")], &archive).unwrap();
        let text = std::fs::read_to_string(directory.path().join("report.md")).unwrap();
        assert!(text.contains("Commit: aaa, bbb.") && text.contains("Quick run"), "{text}");
    }
}
