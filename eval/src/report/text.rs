//! A page on a terminal.

use std::fmt::Write;

use discnice_plot::svg::short;

use super::verdict::Row;
use super::{Content, Page};

/// Prints a page.
#[must_use]
pub fn print(page: &Page) -> String {
    let paper = &page.paper;
    let mut text = format!(
        "{}: {} {} (section {}), {}\n",
        page.name, paper.paper, paper.item, paper.section, paper.title
    );
    // Writing to a string cannot fail.
    match &page.content {
        Content::Absent(reason) => {
            let _ = writeln!(text, "  {reason}");
        }
        Content::Measured(measured) => {
            text.push_str(&table(&measured.rows));
            for remark in &measured.remarks {
                let _ = writeln!(text, "  {remark}");
            }
            let _ = writeln!(text, "  {}: {}", measured.verdict.word(), paper.phenomenon);
        }
    }
    text
}

/// One line for each page: its name, whether the phenomenon holds, what it is.
#[must_use]
pub fn summary(pages: &[Page]) -> String {
    let mut text = String::new();
    for page in pages {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<24}  {:<19}  {}", page.name, page.verdict(), page.paper.title);
    }
    text
}

fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 6]> =
        std::iter::once(["", "unit", "paper", "measured", "range", ""].map(str::to_owned))
            .chain(rows.iter().map(cells))
            .collect();
    let width =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        let line = format!(
            "  {:<w0$}  {:<w1$}  {:>w2$}  {:>w3$}  {:>w4$}  {}",
            row[0],
            row[1],
            row[2],
            row[3],
            row[4],
            row[5],
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2],
            w3 = widths[3],
            w4 = widths[4],
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The columns that every form of a report has: label, unit, paper, measured, range, verdict.
pub fn cells(row: &Row) -> [String; 6] {
    let dash = || "-".to_owned();
    let range = match row.range {
        Some((low, high)) if row.rounds > 1 => format!("{} to {}", short(low), short(high)),
        _ => dash(),
    };
    let verdict = match (row.verdict.word(), row.bounds.as_str()) {
        (word, "") => word.to_owned(),
        (word, bounds) => format!("{word} ({bounds})"),
    };
    [
        row.label.clone(),
        row.unit.clone(),
        row.paper.map_or_else(dash, short),
        row.median.map_or_else(dash, short),
        range,
        verdict,
    ]
}
