//! All pages as Markdown, with the plots as files beside it.

use std::fmt::Write;

use super::head::{Head, plot_name};
use super::page::{Content, Page};
use super::text::cells;

/// Prints the report.
#[must_use]
pub fn print(head: &Head, pages: &[Page]) -> String {
    let mut text = String::from("# Tables and figures, measured\n\n");
    for line in head.lines() {
        text.push_str(&format!("- {line}\n"));
    }
    text.push_str("\n| name | paper | shows | result |\n|---|---|---|---|\n");
    // Writing to a string cannot fail.
    for page in pages {
        let paper = &page.paper;
        let _ = writeln!(
            text,
            "| {} | {} {} | {} | {} |",
            page.name,
            paper.paper,
            paper.item,
            cell(&paper.title),
            page.verdict()
        );
    }
    for page in pages {
        let _ = writeln!(text, "\n## {}\n", page.name);
        let paper = &page.paper;
        let _ = writeln!(
            text,
            "{} {}, section {}: {}. {}\n",
            paper.paper, paper.item, paper.section, paper.title, paper.phenomenon
        );
        match &page.content {
            Content::Absent(reason) => {
                let _ = writeln!(text, "{reason}");
            }
            Content::Measured(measured) => {
                text.push_str(
                    "| | unit | paper | measured | range | |\n|---|---|---|---|---|---|\n",
                );
                for row in &measured.rows {
                    let cells = cells(row).map(|text| cell(&text));
                    let _ = writeln!(text, "| {} |", cells.join(" | "));
                }
                text.push('\n');
                for remark in &measured.remarks {
                    let _ = writeln!(text, "- {remark}");
                }
                for (index, plot) in measured.plots.iter().enumerate() {
                    let name = plot_name(page.name, index);
                    let _ = writeln!(text, "\n![{}]({name})", plot.title);
                }
            }
        }
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
