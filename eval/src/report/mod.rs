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
    let head =
        Head { facts: &record.facts, disk: &record.settings.disk, quick: record.settings.quick };
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
